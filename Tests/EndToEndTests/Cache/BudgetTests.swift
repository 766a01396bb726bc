// Budgets of the real binary (docs/caching.md#budgets).
import Foundation
import HTTPTypes
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(2))) struct BudgetTests {
    @Test func readsBeyondTheBudgetAreServedStaleAndNoClientIsRefused() async throws {
        let limit: JSONValue = [
            "rate_limit": ["requests": 6, "per": "1h"], "probe": .null, "routes": [["match": "/v1/notes/**", "category": "important"]],
        ]
        try await World.with(upstream: limit) { world in
            _ = try await world.send("GET", "/v1/notes/1")
            // Six requests are the whole budget.
            for _ in 0..<5 { _ = try await world.send("GET", "/v1/notes/2", fields: ["Cache-Control: no-cache"]) }
            let before = world.requests.count
            let forced = try await world.send("GET", "/v1/notes/2", fields: ["Cache-Control: no-cache"])
            #expect(forced.status == 200 && world.requests.count == before + 1, "a client that demands it gets a new one")
            let missing = try await world.send("GET", "/v1/notes?unknown=1")
            #expect(missing.status == 200, "a client without a stored response is not refused")
            let url = "http://127.0.0.1:\(world.api.port)/v1/other"
            let prefetched = try await Command.rockpool(
                ["cache", "prefetch", url, "--state-dir", world.server.stateDirectory, "--format", "json"])
            #expect(prefetched.status == 1 && prefetched.output.contains("the request budget of notes is spent until"), "\(prefetched)")
        }
    }

    @Test func aStaleEntryIsServedWhereTheBudgetIsSpent() async throws {
        let answered = Counter()
        let origin = try await RawServer.answering { _ in
            let number = answered.next()
            return "HTTP/1.1 200 OK\r\nCache-Control: max-age=0\r\nETag: \"\(number)\"\r\nContent-Length: 2\r\n\r\nab"
        }
        var settings = ServerSettings(upstream: origin.port)
        settings.upstream = settings.upstream?.merging(["rate_limit": ["requests": 2, "per": "1h"]])
        let server = try await ServerProcess.start(settings)
        for expected in ["fwd=uri-miss", "fwd=stale", "hit; ttl=", "hit; ttl="] {
            let reply = try await Curl.send("GET", "http://\(server.gateway)/a")
            #expect(reply.status == 200 && reply["cache-status"]?.contains(expected) == true, "\(reply.heads)")
            if expected.hasPrefix("hit") { #expect(reply["cache-status"]?.contains("detail=budget") == true, "\(reply.heads)") }
        }
        #expect(answered.count == 2)
        let demanded = try await Curl.send("GET", "http://\(server.gateway)/a", fields: ["Cache-Control: no-cache"])
        #expect(demanded.status == 200 && answered.count == 3)
        #expect(try await server.stop() == .exit(0))
        await origin.stop()
    }

    @Test func theFirstDemandToPauseIsAnsweredFromACopy() async throws {
        let answered = Counter()
        let play: PlayedSite.Play = { asked in
            guard asked.method == "GET" else { return .text("", status: 204) }
            return asked.path == "/a" && answered.next() == 1
                ? .text("a", "Cache-Control: max-age=0", "ETag: \"1\"") : .text("slow down", status: 429, "Retry-After: 60")
        }
        try await PlayedWorld.with(play) { world in
            try await #expect(world.get("/a").text == "a")
            try await world.stored("/a")
            let reply = try await world.get("/a")
            #expect(reply.status == 200 && reply.text == "a" && reply["cache-status"]?.contains("detail=budget") == true, "\(reply.heads)")
            #expect(reply["proxy-status"] == nil && answered.count == 2)
            try await #expect(world.get("/a", ["Cache-Control: no-cache"]).status == 429, "a client that demands it gets the answer")
            try await #expect(world.get("/b").status == 429, "no copy")
        }
    }

    @Test func queuedWritesKeepWithinTheBudgetAndArrive() async throws {
        try await World.with(upstream: ["rate_limit": ["requests": 5, "per": "5s"], "probe": .null]) { world in
            try await #expect(world.server.change("PUT", "/v1/network", ["mode": "offline"]).status < 300)
            for number in 0..<10 { _ = try await world.queued("POST", "/v1/notes", body: #"{"title":"\#(number)"}"#) }
            let began = ContinuousClock.now
            try await #expect(world.server.change("PUT", "/v1/network", ["mode": "auto"]).status < 300)
            try await world.server.outboxIsEmpty(within: .seconds(30))
            #expect(ContinuousClock.now - began > .seconds(3), "ten requests take more than one period of five")
            #expect(world.requests.filter { $0.method == .post }.count == 10)
        }
    }

    @Test func aMeteredConnectionPrefetchesNothing() async throws {
        for (metered, stored) in [("true", false), ("false", true)] {
            try await World.with(upstream: ["metered": .string(metered), "transfer_hours": "00:00-24:00"]) { world in
                let url = "http://127.0.0.1:\(world.api.port)/v1/notes/1"
                let result = try await world.server.change("POST", "/v1/cache/prefetch", ["urls": [.string(url)]])
                let item = try #require(result.json?["items"]?.array?.first)
                #expect(item["stored"]?.bool == stored, "\(item)")
                if !stored { #expect(item["reason"] == "the connection to notes is metered") }
            }
        }
    }
}

/// Counts from several tasks.
private final class Counter: Sendable {
    private let value = Mutex(0)

    var count: Int { value.withLock { $0 } }

    func next() -> Int {
        value.withLock { value in
            value += 1
            return value
        }
    }
}
