// The responses of an upstream at replay, and the resulting state of the operation (docs/outbox.md#answers).
import HTTPTypes
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct ReplayTests {
    @Test func retryAfterIsHonoured() async throws {
        try await World.with { world in
            await world.goOffline()
            let id = try await world.queued("PATCH", "/v1/notes/1", body: #"{"title":"later"}"#)
            world.api.inject {
                $0.canned = .init(status: 503, fields: [.retryAfter: "3"], methods: [.patch], times: 1)
            }
            try await world.api.restart()
            let operation = try await world.server.operation(id, reaching: "delivered")
            let tries = world.api.log().filter { $0.method == .patch }
            #expect(tries.count == 2 && operation["attempts"]?.integer == 2)
            let (first, second) = (try #require(tries.first), try #require(tries.last))
            #expect(second.at - first.at >= .seconds(3) && second.hasEffect && first.key == second.key)
        }
    }

    @Test func whatIsRejectedWaitsForAPersonAndHoldsItsLaneWhereItsRouteSaysSo() async throws {
        try await World.with(upstream: ["routes": [["match": "/v1/notes/*", "on_refused": "hold"]]]) { world in
            await world.goOffline()
            let bad = try await world.queued("PATCH", "/v1/notes/1", body: #"{"title":7}"#)
            let behind = try await world.queued("PATCH", "/v1/notes/1", body: #"{"title":"behind"}"#)
            let beside = try await world.queued("PATCH", "/v1/notes/2", body: #"{"title":"beside"}"#)
            try await world.api.restart()
            _ = try await world.server.operation(beside, reaching: "delivered")
            let dead = try await world.server.operation(bad, reaching: "dead")
            #expect(dead["reason"]?.string == "rejected" && dead["result"]?["status"]?.integer == 422)
            try await #expect(world.server.get("/v1/operations/\(behind)").json?["state"]?.string == "pending")
            let status = try await world.server.get("/v1/status").json
            #expect(status?["state"]?.string == "error" && status?["failed"]?.integer == 1)

            let late = try await world.queued("PATCH", "/v1/notes/1", body: #"{"count":9}"#)
            let tries = world.api.log().count { $0.method == .patch && $0.target == "/v1/notes/1" }
            let retry = try await world.server.command("outbox", "retry", bad)
            #expect(retry.status == 0 && retry.output.contains("\(bad) is dead (rejected): 422"), "\(retry.output)\(retry.errors)")
            try await eventually("another try") {
                world.api.log().count { $0.method == .patch && $0.target == "/v1/notes/1" } == tries + 1
            }
            _ = try await world.server.operation(bad, reaching: "dead")
            let discard = try await world.server.command("outbox", "discard", bad)
            #expect(discard.status == 0, "\(discard.errors)")
            _ = try await world.server.operation(behind, reaching: "delivered")
            let gone = try await world.server.get("/v1/operations/\(bad)").json
            #expect(gone?["state"]?.string == "cancelled" && gone?["reason"]?.string == "discarded")
            _ = try await world.server.operation(late, reaching: "delivered")
            #expect(world.api.note(id: "1")?.members["title"] == "behind" && world.api.note(id: "1")?.members["count"] == 9)
            try await #expect(world.server.command("outbox", "retry", bad).status == 1)
        }
    }

    @Test(arguments: ["POST", "PATCH"]) func aLostAnswerIsNoSecondEffect(_ method: String) async throws {
        try await World.with { world in
            await world.goOffline()
            let path = method == "POST" ? "/v1/notes" : "/v1/notes/1"
            let id = try await world.queued(method, path, body: #"{"title":"once"}"#)
            world.api.faults.commitThenDrop = 1
            try await world.api.restart()
            let operation = try await world.server.operation(id, reaching: "delivered")
            let key = try #require(operation["idempotencyKey"]?.string)
            #expect(world.api.effects(forKey: key) == 1 && world.api.log().filter { $0.key == key }.count == 2)
            #expect(world.api.notes.filter { $0.members["title"] == "once" }.count == 1)
        }
    }

    @Test func aLostAnswerWithoutKeysIsUncertain() async throws {
        let upstream: JSONValue = ["idempotency": ["honoured": "unknown", "max_processing": "1s"]]
        try await World.with(api: NotesSettings(honoursKeys: false), upstream: upstream) { world in
            await world.goOffline()
            let id = try await world.queued("POST", "/v1/notes", body: #"{"title":"once"}"#)
            world.api.faults.commitThenDrop = 1
            try await world.api.restart()
            _ = try await world.server.operation(id, reaching: "uncertain")
            let other = try await world.server.get("/v1/status").json
            #expect(other?["state"]?.string == "pending" && other?["pending"]?.integer == 1)
            try await world.server.stop()
            try await world.server.start()
            _ = try await world.server.operation(id, reaching: "uncertain")
            #expect(world.api.notes.filter { $0.members["title"] == "once" }.count == 1)
        }
    }

    /// A lost response to a live write never becomes a 5xx (docs/reference/behaviour.md#lost-answers).
    @Test(arguments: [true, false]) func aLostAnswerWhileOnline(_ honoursKeys: Bool) async throws {
        let upstream: JSONValue = ["idempotency": ["honoured": honoursKeys ? "yes" : "unknown"]]
        try await World.with(api: NotesSettings(honoursKeys: honoursKeys), upstream: upstream) { world in
            world.api.faults.commitThenDrop = 1
            let reply = try await world.send(
                "POST", "/v1/notes", fields: ["Content-Type: application/json"], body: #"{"title":"once"}"#)
            #expect(reply.status == 202 || (honoursKeys && reply.status == 201), "\(reply.status) \(reply.text)")
            if honoursKeys { try await world.server.outboxIsEmpty() } else { #expect(reply["rockpool-state"] == "uncertain") }
            #expect(world.api.notes.filter { $0.members["title"] == "once" }.count == 1)
        }
    }

    /// docs/outbox.md: half of all responses are lost, and no write takes effect twice.
    @Test func halfOfEverythingIsLost() async throws {
        try await World.with { world in
            var titles: Set<String> = []
            for n in 0..<12 {
                world.api.inject {
                    $0.commitThenDrop = n % 4 == 0 ? 1 : 0
                    $0.dropBeforeCommit = n % 4 == 2 ? 1 : 0
                }
                let reply = try await world.send(
                    "POST", "/v1/notes", fields: ["Content-Type: application/json"], body: #"{"title":"n\#(n)"}"#)
                #expect([201, 202].contains(reply.status), "\(n): \(reply.status) \(reply.text)")
                titles.insert("n\(n)")
            }
            world.api.faults = Faults()
            try await world.server.outboxIsEmpty()
            let created = world.api.notes.compactMap { $0.members["title"]?.string }.filter { titles.contains($0) }
            #expect(created.count == 12 && Set(created) == titles)
        }
    }
}
