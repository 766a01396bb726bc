// A write builds on what its client was shown, whatever has been stored since: otherwise another's edit would be lost without a word
// (docs/outbox.md#sight).
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct SightTests {
    private static let json = "Content-Type: application/json"

    /// Another client edits the note at the API itself.
    private func edited(_ world: World) async throws {
        let reply = try await Curl.send(
            "PATCH", "http://127.0.0.1:\(world.api.port)/v1/notes/1", fields: ["Content-Type: application/merge-patch+json"],
            body: #"{"body": "theirs"}"#)
        try #require(reply.status == 200, "\(reply)")
    }

    /// Saves the whole note as the client has it in front of it, with another title; then theirs and mine are both there, or a person is
    /// asked.
    private func expectNothingLost(_ world: World, of fields: [String] = [], offline: Bool = false) async throws {
        if offline { _ = try await world.server.command("network", "offline") }
        let reply = try await world.send(
            "PUT", "/v1/notes/1", fields: fields + [Self.json], body: #"{"title": "mine", "body": "before", "tags": [], "count": 0}"#)
        #expect(reply.status < 500, "\(reply.status) \(reply.text)")
        if offline { _ = try await world.server.command("network", "auto") }
        try await eventually("it is decided") {
            let open = try await world.server.get("/v1/operations?state=pending,inflight").json?["items"]?.array ?? []
            return open.isEmpty
        }
        let now = try await Curl.send("GET", "http://127.0.0.1:\(world.api.port)/v1/notes/1").json
        #expect(now?["body"]?.string == "theirs", "the other's edit is gone: \(String(describing: now))")
        let conflicts = try await world.server.get("/v1/conflicts?state=all").json?["items"]?.array ?? []
        #expect(now?["title"]?.string == "mine" || !conflicts.isEmpty, "\(String(describing: now))")
    }

    private func world(_ cacheControl: String, _ body: (World) async throws -> Void) async throws {
        try await World.with(
            seed: [["title": "first", "body": "before"]], api: NotesSettings(cacheControl: cacheControl), upstream: ["policy": "standard"],
            body)
    }

    /// A refresh in the background stores the next version while its client is shown the one before.
    @Test(arguments: [false, true]) func aRefreshInTheBackgroundIsNotSeen(offline: Bool) async throws {
        try await world("max-age=0, stale-while-revalidate=600") { world in
            try await #expect(world.send("GET", "/v1/notes/1").json?["body"]?.string == "before")
            try await edited(world)
            try await #expect(world.send("GET", "/v1/notes/1").json?["body"]?.string == "before")
            try await eventually("the copy is refreshed") { world.arrivals("GET", "/v1/notes/1") == 2 }
            try await Task.sleep(for: .milliseconds(300))
            try await expectNothingLost(world, offline: offline)
        }
    }

    /// Two users share a copy; the second one's read brings it up to date.
    @Test(arguments: [false, true]) func whatAnotherUserReadIsNotSeen(offline: Bool) async throws {
        try await world("public, no-cache") { world in
            let (ann, carl) = ("Authorization: Bearer ann", "Authorization: Bearer carl")
            try await #expect(world.send("GET", "/v1/notes/1", fields: [ann]).json?["body"]?.string == "before")
            try await edited(world)
            try await #expect(world.send("GET", "/v1/notes/1", fields: [carl]).json?["body"]?.string == "theirs")
            try await expectNothingLost(world, of: [ann], offline: offline)
        }
    }

    /// What is not stored, or was removed since, was seen nevertheless.
    @Test(arguments: [("no-store", false), ("no-store", true), ("no-cache", false), ("no-cache", true)])
    func whatIsNotStoredWasSeen(cacheControl: String, offline: Bool) async throws {
        try await world(cacheControl) { world in
            try await #expect(world.send("GET", "/v1/notes/1").json?["body"]?.string == "before")
            _ = try await world.server.command("cache", "purge", "--all", "--yes")
            try await edited(world)
            try await expectNothingLost(world, offline: offline)
        }
    }

    /// A client's own writes are no conflict with it, online and off, whatever it reads between.
    @Test func aClientDoesNotMeetItself() async throws {
        try await world("max-age=0, stale-while-revalidate=600") { world in
            func write(_ number: Int) async throws {
                let reply = try await world.send(
                    "PUT", "/v1/notes/1", fields: [Self.json], body: #"{"title": "\#(number)", "body": "b", "tags": [], "count": 0}"#)
                #expect([200, 202].contains(reply.status), "\(reply.status) \(reply.text)")
            }
            try await #expect(world.send("GET", "/v1/notes/1").status == 200)
            for number in 1...4 { try await write(number) }
            try await #expect(world.send("GET", "/v1/notes/1").status == 200)
            _ = try await world.server.command("network", "offline")
            for number in 5...8 {
                try await write(number)
                if number % 2 == 0 { _ = try await world.send("GET", "/v1/notes/1") }
            }
            _ = try await world.server.command("network", "auto")
            try await eventually("all is delivered") {
                try await (world.server.get("/v1/operations?state=pending,inflight").json?["items"]?.array ?? []).isEmpty
            }
            for number in 9...11 { try await write(number) }
            try await #expect(world.server.get("/v1/conflicts?state=all").json?["items"]?.array == [])
            try await #expect(Curl.send("GET", "http://127.0.0.1:\(world.api.port)/v1/notes/1").json?["title"]?.string == "11")
        }
    }
}
