// A status that never says "well" when it is not: what was never tried, writes that were refused, a directory that is gone
// (docs/reference/admin-api.md#status).
import Foundation
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct HonestStatusTests {
    private func upstream(of server: ServerProcess) async throws -> JSONValue? {
        try await server.get("/v1/status").json?["upstreams"]?.array?.first
    }

    @Test func whatWasNotTriedIsNotOnline() async throws {
        let api = try await NotesServer.start()
        let server = try await ServerProcess.start(ServerSettings(upstream: api.port))
        try await #expect(upstream(of: server)?["reachability"]?.string == "untried")
        let status = try await server.command("status")
        #expect(status.output.contains("not tried yet"), "\(status.output)")
        try await eventually("a probe decides") { try await upstream(of: server)?["reachability"]?.string == "online" }
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        await api.stop()
    }

    @Test func aNameThatDoesNotResolveIsSaid() async throws {
        var settings = ServerSettings()
        settings.others = [["name": "typo", "origin": "https://api.example.invalid"]]
        let server = try await ServerProcess.start(settings)
        try await eventually("the name is looked up") { try await upstream(of: server)?["reachability"]?.string == "offline" }
        let status = try await server.command("status")
        #expect(status.output.contains("does not resolve"), "\(status.output)")
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
    }

    @Test func withoutAnAPIItSaysHowToAddOne() async throws {
        let server = try await ServerProcess.start(ServerSettings())
        let status = try await server.command("status")
        #expect(status.output.contains("rockpool add https://"), "\(status.output)")
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
    }

    @Test func refusedWritesAreSeen() async throws {
        let server = try await ServerProcess.start(ServerSettings(upstream: FreePort.next(), ["data_limit": "64 KiB"]))
        let body = String(repeating: "a", count: 20_000)
        var refusals = 0
        for number in 0..<12 {
            let reply = try await Curl.send(
                "POST", "http://\(server.gateway)/v1/notes", fields: ["Content-Type: text/plain"], body: "\(number) \(body)")
            refusals += reply.status == 507 ? 1 : 0
        }
        try #require(refusals > 0)
        let words = try await server.get("/v1/status").json?["refused"]?.string ?? ""
        #expect(words.hasPrefix("\(refusals) write"), "\(words)")
        try await #expect(server.command("status", "--check").status == 1)
        #expect(server.errors.contains("writes are refused"), "\(server.errors)")
        let doctor = try await server.command("doctor")
        #expect(doctor.output.contains("refused"), "\(doctor.output)")
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
    }

    /// What is committed into a file without a name is lost with the process: it is not acknowledged.
    @Test(arguments: ["removed", "moved", "replaced"]) func aDirectoryThatIsGoneTakesNoWrite(how: String) async throws {
        let server = try await ServerProcess.start(ServerSettings(upstream: FreePort.next()))
        func write() async throws -> Int {
            try await Curl.send(
                "POST", "http://\(server.gateway)/v1/notes", fields: ["Content-Type: application/json"], body: #"{"title": "a"}"#
            ).status
        }
        try await #expect(write() == 202)
        let moved = server.scratch.path + "/elsewhere"
        switch how {
        case "removed": try FileManager.default.removeItem(atPath: server.stateDirectory)
        case "moved": try FileManager.default.moveItem(atPath: server.stateDirectory, toPath: moved)
        default:
            try FileManager.default.moveItem(atPath: server.stateDirectory, toPath: moved)
            try FileManager.default.createDirectory(atPath: server.stateDirectory, withIntermediateDirectories: false)
            for file in ["data.sqlite", "admin-token"] {
                try FileManager.default.copyItem(atPath: "\(moved)/\(file)", toPath: "\(server.stateDirectory)/\(file)")
            }
        }
        try await #expect(write() == 503)
        try await #expect(server.get("/readyz").status == 503)
        #expect(server.errors.contains("removed or replaced"), "\(server.errors)")
        if how == "moved" {
            try FileManager.default.moveItem(atPath: moved, toPath: server.stateDirectory)
            try await eventually("writes are taken again") { try await write() == 202 }
        }
        try await server.kill()
    }

    @Test func tunnelsAreSeen() async throws {
        let (api, server) = (try await NotesServer.start(), try await ServerProcess.start(ServerSettings()))
        let proxied = ["--proxytunnel", "--proxy", "http://\(server.proxy)"]
        // Plain HTTP inside, on a port that tunnels may not use.
        let refused = try await Curl.send("GET", "http://127.0.0.1:\(api.port)/v1/notes", options: proxied)
        #expect(refused.status == 403)
        let page = try await server.get("/v1/requests?verdict=refused").json?["items"]?.array ?? []
        #expect(page.first?["method"]?.string == "CONNECT" && page.first?["url"]?.string == "127.0.0.1:\(api.port)", "\(page)")
        let hosts = try await server.get("/v1/stats").json?["tunnels"]?.array ?? []
        #expect(hosts.first?["host"]?.string == "127.0.0.1" && hosts.first?["refused"]?.integer == 1, "\(hosts)")
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        await api.stop()
    }

    @Test func theBytesOfATunnelAreCounted() async throws {
        let api = try await NotesServer.start(seed: [["title": "a"]])
        var settings = ServerSettings()
        settings.proxy = ["connect_ports": .array([.number(JSONNumber(Int64(api.port)))])]
        let server = try await ServerProcess.start(settings)
        let reply = try await Curl.send(
            "GET", "http://127.0.0.1:\(api.port)/v1/notes/1", options: ["--proxytunnel", "--proxy", "http://\(server.proxy)"])
        #expect(reply.status == 200)
        try await eventually("the tunnel is listed") {
            try await server.get("/v1/requests?verdict=tunnel").json?["items"]?.array?.isEmpty == false
        }
        let item = try await server.get("/v1/requests?verdict=tunnel").json?["items"]?.array?.first
        #expect((item?["bytes"]?.integer ?? 0) > 100 && item?["status"]?.integer == 200, "\(String(describing: item))")
        #expect(item?["next"]?.string?.hasPrefix("rockpool add https://127.0.0.1") == true, "\(String(describing: item))")
        let tail = try await server.command("tail", "--no-follow")
        #expect(tail.output.contains("CONNECT"), "\(tail.output)")
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        await api.stop()
    }

    @Test func theDocumentationIsServed() async throws {
        let server = try await ServerProcess.start(ServerSettings())
        let pages = try await server.get("/v1/docs").json?["items"]?.array ?? []
        #expect(pages.contains { $0["name"]?.string == "guide/keeping" }, "\(pages)")
        try await #expect(server.get("/v1/docs/guide/keeping").text.hasPrefix("# What is kept"))
        for wrong in ["/v1/docs/guide/none", "/v1/docs/guide/..%2f..%2fREADME", "/v1/docs/%2e%2e/README"] {
            try await #expect(server.get(wrong).status == 404, "\(wrong)")
        }
        let printed = try await Command.rockpool(["docs", "keeping"])
        #expect(printed.output.hasPrefix("# What is kept"), "\(printed.output)\(printed.errors)")
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
    }
}
