// No client can fill the outbox for all others, and unproved writes are purged again (docs/reference/behaviour.md#shares *queue shares*).
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct ShareTests {
    private static let large = #"{"title":"large","body":"\#(String(repeating: "x", count: 60_000))"}"#

    /// Sends 79 large writes without a credential.
    /// - Returns: the number of accepted writes, and the first refusal.
    private func flood(_ world: World) async throws -> (taken: Int, refusal: Curl?) {
        var (taken, refusal): (Int, Curl?) = (0, nil)
        for n in 0..<79 {
            let reply = try await world.send(
                "PUT", "/v1/notes/\(n % 10)", fields: ["Content-Type: application/json"], body: Self.large)
            if reply.status == 202 { taken += 1 } else { refusal = refusal ?? reply }
        }
        return (taken, refusal)
    }

    @Test func whoIsNotProvedLeavesRoomForOthers() async throws {
        try await World.with(storage: ["data_limit": "13.2 MB"], cleanup: ["unproved_after": "1s"]) { world in
            world.api.faults.requiresToken = true
            let bearer = ["Authorization: Bearer \(world.api.issueToken(to: "anna"))"]
            try await #expect(world.send("GET", "/v1/me", fields: bearer).status == 200)
            await world.goOffline()
            let (taken, refusal) = try await flood(world)
            // The second write of each note is based on the first, and the pinned copy counts too.
            #expect(taken == 12, "12% of 8 MB that can be used: ten of 60 KB, two of 120 KB")
            expectProblem(try #require(refusal), "outbox-full", 507)
            #expect(refusal?.json?["detail"]?.string?.contains("storage.unproved_share") == true, "\(refusal?.text ?? "")")
            for n in 0..<10 {
                let body = Self.large.replacing(#""title":"large""#, with: #""title":"large \#(n)""#)
                _ = try await world.queued("POST", "/v1/notes", fields: bearer, body: body)
            }
            // While no operation can be sent, none is purged, however old it is.
            try await #expect(world.server.command("storage-cleanup").status == 0)
            try await #expect(world.server.operations("pending").count == 22)

            try await world.api.restart()
            try await eventually("ten delivered, three refused") {
                let ended = try await world.server.operations("delivered,dead").compactMap { $0["state"]?.string }
                return ended.count { $0 == "delivered" } == 10 && ended.count { $0 == "dead" } == 3
            }
            // The three refusals pause the route, for this client alone. A person has the others sent nevertheless.
            let waiting = try await world.server.operations("pending").compactMap { $0["waiting"]?.string }
            #expect(waiting.count == 9 && waiting.contains { $0.contains("mass-refusal") && $0.contains("of one client") }, "\(waiting)")
            try await eventually("all others refused") {
                _ = try await world.server.command("outbox", "flush")
                return try await world.server.operations("pending").isEmpty
            }
            try await eventually("room for others that are not proved") {
                try await #expect(world.server.command("storage-cleanup").status == 0)
                return try await world.server.operations("pending,dead").isEmpty
            }
            #expect(Files.names(in: world.server.stateDirectory).contains("purged-unproved.jsonl"))

            // A purged operation does not block later ones.
            await world.goOffline()
            let id = try await world.queued("PUT", "/v1/notes/1", body: #"{"title":"again"}"#)
            world.api.faults.requiresToken = false
            try await world.api.restart()
            _ = try await world.server.operation(id, reaching: "delivered")
            #expect(world.api.note(id: "1")?.members["title"] == "again")
        }
    }

    /// Without any other client the anonymous writes have the share of a proved client.
    @Test func withoutCredentialsAtAllThereIsHalfOfIt() async throws {
        try await World.with(storage: ["data_limit": "13.3 MB"]) { world in
            try await #expect(world.send("GET", "/v1/notes/1").status == 200)
            await world.goOffline()
            let (taken, refusal) = try await flood(world)
            #expect(taken == 38, "50% of 8 MB that can be used: ten of 60 KB, twenty-eight of 120 KB")
            expectProblem(try #require(refusal), "outbox-full", 507)
            #expect(refusal?.json?["detail"]?.string?.contains("storage.principal_share") == true, "\(refusal?.text ?? "")")
            try await world.server.kill()
            try await world.server.start()
            let reply = try await world.send("PUT", "/v1/notes/1", fields: ["Content-Type: application/json"], body: Self.large)
            expectProblem(reply, "outbox-full", 507)
        }
    }
}
