// `/v1/requests` and `rockpool tail` of the real binary (docs/reference/admin-api.md#requests, docs/reference/cli.md#tail).
import Foundation
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(2))) struct RequestsTests {
    private func items(_ world: World, _ query: String = "") async throws -> [JSONValue] {
        let reply = try await world.server.get("/v1/requests\(query)")
        #expect(reply.status == 200, "\(reply.text)")
        return try #require(reply.json?["items"]?.array)
    }

    private func tail(_ world: World, _ arguments: [String]) async throws -> Command {
        try await Command.rockpool(["tail", "--state-dir", world.server.stateDirectory] + arguments)
    }

    @Test func whatCameAndHowItWasAnsweredIsListed() async throws {
        try await World.with { world in
            let fields = ["Authorization: Bearer planted-1", "Cache-Control: max-age=600"]
            _ = try await world.send("GET", "/v1/notes/1?token=planted-2", fields: fields)
            for _ in 0..<3 { _ = try await world.send("GET", "/v1/notes/2") }
            _ = try await world.send("GET", "/v1/absent", via: .proxy)
            try await eventually("five") { try await items(world).count == 5 }
            let all = try await items(world)
            #expect(all[0]["status"] == 404 && all[4]["url"]?.string?.hasSuffix("/v1/notes/1?token=REDACTED") == true)
            let miss = try #require(all.last)
            #expect(miss["verdict"] == "miss" && miss["upstream"] == "notes" && miss["client"]?.string?.isEmpty == false)
            #expect(miss["why"]?.string?.isEmpty == false && miss["bytes"]?.integer ?? 0 > 0)
            #expect(miss["steps"]?.array?.compactMap { $0["step"]?.string }.prefix(4) == ["routed", "looked", "decided", "fetched"])
            let phases = ["queue", "dns", "connect", "tls", "firstByte", "transfer"].compactMap { miss["timings"]?[$0]?.number?.double }
            #expect(phases.count == 6 && phases.allSatisfy { $0 >= 0 && $0 < 5 }, "\(miss)")
            #expect(try await items(world, "?status=4xx").count == 1)
            #expect(try await items(world, "?method=GET,HEAD&path=notes/2").count == 3)
            try await expectProblem(world.server.get("/v1/requests?upstream=other"), "not-found", 404)
            #expect(try await items(world, "?limit=2").count == 2)
            let page = try #require(try await world.server.get("/v1/requests?limit=2").json?["next"]?.string)
            #expect(try await items(world, "?limit=9&cursor=\(page)").count == 3)
            for query in ["status=9x", "verdict=good", "since=soon", "limit=0", "follow=maybe", "format=xml"] {
                try await expectProblem(world.server.get("/v1/requests?\(query)"), "bad-request", 400)
            }
            try await expectProblem(world.server.get("/v1/requests/none-1"), "not-found", 404)
            let id = try #require(miss["id"]?.string)
            let one = try await world.server.get("/v1/requests/\(id)")
            #expect(one.json?["curl"]?.string?.contains("curl --globoff") == true && one.json?["requestHeaders"]?.array != nil)
            let said = try await one.text + world.server.get("/v1/requests").text + world.server.get("/v1/requests?format=har").text
            #expect(!said.contains("planted"))
        }
    }

    @Test func hitsOfTheFastPathAreListedToo() async throws {
        try await FastPathTests.with { server, _ in
            let urls = [String](repeating: "http://\(server.gateway)/pearl?token=planted", count: 20)
            try await #expect(Command.run("/usr/bin/curl", ["-s"] + urls).status == 0)
            let metrics = try await server.get("/metrics").text
            #expect(metrics.firstMatch(of: /rockpool_hot_hits_total (\d+)/).flatMap { Int($0.1) } ?? 0 > 5, "no hot hit")
            try await eventually("all of them") { try await server.get("/v1/requests").json?["items"]?.array?.count == 20 }
            let hits = try #require(try await server.get("/v1/requests?verdict=hit").json?["items"]?.array)
            #expect(hits.count == 19 && hits.allSatisfy { $0["represents"] == 1 && $0["upstream"] == "notes" && $0["bytes"] == 2000 })
            #expect(hits.allSatisfy { $0["url"]?.string?.hasSuffix("/pearl?token=REDACTED") == true && $0["status"] == 200 })
            #expect(hits[0]["cacheStatus"]?.string?.hasPrefix("rockpool; hit") == true)
            #expect(hits.contains { $0["why"]?.string?.hasPrefix("kept ready in memory") == true })
            let measured = metrics.firstMatch(of: /rockpool_request_duration_seconds_count\{verdict="hit"\} (\d+)/)
            #expect(measured.flatMap { Int($0.1) } == 19, "hot hits are measured")
        }
    }

    @Test func theTailFollowsAndFilters() async throws {
        try await World.with { world in
            _ = try await world.send("GET", "/v1/notes/1")
            let arguments = ["tail", "--state-dir", world.server.stateDirectory, "--format", "json"]
            let all = try await ChildProcess(Binary.path, arguments)
            let missing = try await ChildProcess(Binary.path, arguments + ["--status", "404", "-n", "0"])
            try await eventually("the first") { all.output.split(separator: "\n").count == 1 }
            _ = try await world.send("GET", "/v1/notes/2")
            _ = try await world.send("GET", "/v1/absent")
            try await eventually("the others") { all.output.split(separator: "\n").count == 3 }
            try await eventually("the filtered one") { missing.output.split(separator: "\n").count == 1 }
            let line = try JSONValue.parse(Array(missing.output.utf8))
            #expect(line["status"] == 404 && line["url"]?.string?.hasSuffix("/v1/absent") == true)
            all.signal(SIGKILL)
            missing.signal(SIGKILL)
            let text = try await tail(world, ["--no-follow", "--path", "absent"])
            #expect(text.status == 0 && text.output.contains(" 404 ") && text.output.contains("/v1/absent"), "\(text)")
            #expect(try await tail(world, ["--no-follow", "--miss", "--format", "json"]).output.split(separator: "\n").count > 0)
            #expect(try await tail(world, ["--no-follow", "--status", "9x"]).status == 1)
            #expect(try await tail(world, ["-n", "-1"]).status == 64)
            let har = try JSONValue.parse(Array(try await tail(world, ["--har"]).output.utf8))
            #expect(har["log"]?["entries"]?.array?.count == 3 && har["log"]?["version"] == "1.2")
        }
    }

    @Test func aWriteThatIsQueuedAndDeliveredAppearsTwice() async throws {
        try await World.with { world in
            await world.goOffline()
            let id = try await world.queued("PATCH", "/v1/notes/1", body: #"{"title":"x"}"#)
            try await eventually("the queued one") {
                try await items(world, "?verdict=queued").first?["next"]?.string == "rockpool outbox show \(id)"
            }
            try await world.api.restart()
            try await world.server.outboxIsEmpty()
            try await eventually("the delivery") { try await items(world, "?verdict=delivered").first?["operation"]?.string == id }
        }
    }

    @Test func followersDoNotKeepTheServerFromStopping() async throws {
        try await World.with { world in
            let child = try await ChildProcess(Binary.path, ["tail", "--state-dir", world.server.stateDirectory])
            _ = try await world.send("GET", "/v1/notes/1")
            try await eventually("the line") { !child.output.isEmpty }
            let began = ContinuousClock.now
            try await #expect(world.server.stop() == .exit(0))
            #expect(ContinuousClock.now - began < .seconds(8))
            #expect(try await child.ending(within: .seconds(5)).status == 69)
        }
    }
}
