// `network offline`: open connections end, no packet is sent, and the mode survives restarts (docs/reference/behaviour.md#network-switch
// `/v1/network`, §7 `network`).
import Foundation
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(2)), .serialized) struct NetworkSwitchTests {
    @Test(arguments: [SIGTERM, SIGKILL]) func theSwitchSurvivesRestarts(_ signal: Int32) async throws {
        try await World.with { world in
            let server = world.server
            try await #expect(server.command("network", "offline").status == 0)
            let before = world.requests.count
            let id = try await world.queued("PUT", "/v1/notes/1", fields: ["Idempotency-Key: \"once\""], body: #"{"title":"later"}"#)
            server.signal(signal)
            try await server.ending()
            try await server.start()
            try await #expect(server.get("/v1/network").json?["mode"]?.string == "offline")
            try await #expect(world.send("GET", "/v1/notes/2").status == 504)
            // One second is enough for a probe, a replay and a pull.
            try await Task.sleep(for: .seconds(1))
            #expect(world.requests.count == before)
            try await #expect(server.command("network", "auto").status == 0)
            _ = try await server.operation(id, reaching: "delivered")
            #expect(world.api.effects(forKey: "once") == 1)
        }
    }

    @Test func theSwitchOfOneUpstreamSurvivesARestart() async throws {
        try await World.with { world in
            try await #expect(world.server.change("PUT", "/v1/network", ["mode": "offline", "upstream": "notes"]).status == 200)
            try await world.server.stop()
            try await world.server.start()
            let shown = try await world.server.get("/v1/network").json
            #expect(shown?["mode"]?.string == "auto")
            #expect(shown?["upstreams"]?.array?.first?["mode"]?.string == "offline")
            try await #expect(world.send("GET", "/v1/notes/1").status == 504)
        }
    }

    @Test func theConfigurationSaysHowToStartAndTheHandWins() async throws {
        try await World.with { world in
            try await world.server.stop()
            try await world.server.start(environment: ["ROCKPOOL_NETWORK": "offline"])
            try await #expect(world.send("GET", "/v1/notes/1").status == 504)
            try await #expect(world.server.command("network", "auto").status == 0)
            try await world.server.stop()
            try await world.server.start(environment: ["ROCKPOOL_NETWORK": "offline"])
            try await #expect(world.send("GET", "/v1/notes/1").status == 200)
        }
    }

    @Test(arguments: [
        #"{"mode": "offline", "upstream": ["notes"]}"#, #"{"mode": "offline", "upstream": 3}"#, #"{"mode": 3}"#, #"{"upstream": null}"#,
        #"{"mode": "offline", "all": true}"#,
    ]) func aMalformedSwitchSwitchesNothing(_ body: String) async throws {
        try await World.with { world in
            let reply = try await world.server.change("PUT", "/v1/network", try JSONValue.parse(Array(body.utf8)))
            #expect(reply.status == 422, "\(reply.text)")
            try await #expect(world.send("GET", "/v1/notes/1").status == 200)
        }
    }

    /// A tunnel, and a download that is being stored: both end within a second, and the download is resumed later where it stopped.
    @Test func whatIsOpenEnds() async throws {
        let echo = try await RawServer.start { connection in
            while true { try await connection.send(try await connection.read(bytes: 1)) }
        }
        let site = try await FileSite.start(bytes: 4_000_000, pause: .milliseconds(50))
        var settings = ServerSettings(upstream: site.port)
        settings.proxy = ["connect_ports": .array([.number(JSONNumber(Int64(echo.port)))])]
        let server = try await ServerProcess.start(settings)
        let tunnel = try await RawConnection.open(server.proxy)
        try await tunnel.send("CONNECT 127.0.0.1:\(echo.port) HTTP/1.1\r\nHost: 127.0.0.1:\(echo.port)\r\n\r\n")
        _ = try await tunnel.read(through: "\r\n\r\n")
        try await tunnel.send("x")
        #expect(try await tunnel.read(bytes: 1) == Array("x".utf8))
        async let download = Curl.send("GET", "http://\(server.gateway)/file", options: ["--no-buffer"])
        try await eventually("the download is under way") { site.sent > 0 }
        try await Task.sleep(for: .milliseconds(500))
        let switched = ContinuousClock.now
        try await #expect(server.change("PUT", "/v1/network", ["mode": "offline"]).status == 200)
        _ = try await tunnel.readToEnd(within: .seconds(2))
        #expect(ContinuousClock.now - switched < .seconds(2))
        let cut = try await download
        #expect(cut.exit == 18 && cut.body.count < site.bytes.count, "exit \(cut.exit), \(cut.body.count) bytes")
        #expect(cut.body.elementsEqual(site.bytes.prefix(cut.body.count)))
        let refused = try await RawConnection.open(server.proxy)
        try await refused.send("CONNECT 127.0.0.1:\(echo.port) HTTP/1.1\r\nHost: 127.0.0.1:\(echo.port)\r\n\r\n")
        #expect(try await refused.read(through: "\r\n").contains(" 50"))
        try await #expect(server.change("PUT", "/v1/network", ["mode": "auto"]).status == 200)
        let before = site.sent
        let whole = try await Curl.send("GET", "http://\(server.gateway)/file")
        #expect(whole.body == site.bytes && site.sent - before < site.bytes.count, "\(site.sent - before) bytes fetched again")
        try await server.stop()
        await site.stop()
        await echo.stop()
    }
}
