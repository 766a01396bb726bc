// A client that logs out is forgotten, and `rockpool identities` does the same by hand (docs/outbox.md#forgotten).
import HTTPTypes
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct LogoutTests {
    private static let logout: JSONValue = ["routes": [["match": "POST /v1/logout", "queue": "never", "logout": true]]]

    @Test func aLogoutRemovesTheCopiesOfItsIdentityAlone() async throws {
        try await World.with(upstream: Self.logout) { world in
            world.api.faults.requiresToken = true
            let anna = ["Authorization: Bearer \(world.api.issueToken(to: "anna"))"]
            let bert = ["Authorization: Bearer \(world.api.issueToken(to: "bert"))"]
            for fields in [anna, bert] { try await #expect(world.send("GET", "/v1/me", fields: fields).status == 200) }
            world.api.inject { $0.canned = .init(status: 204, methods: [.post], times: 1) }
            try await #expect(world.send("POST", "/v1/logout", fields: anna).status == 204)
            await world.goOffline()
            try await #expect(world.send("GET", "/v1/me", fields: anna).status == 504)
            try await #expect(world.send("GET", "/v1/me", fields: bert).status == 200)
        }
    }

    @Test func theCommandListsAndForgets() async throws {
        try await World.with { world in
            world.api.faults.requiresToken = true
            let anna = ["Authorization: Bearer \(world.api.issueToken(to: "anna"))"]
            try await #expect(world.send("GET", "/v1/me", fields: anna).status == 200)
            await world.goOffline()
            let waiting = try await world.queued("PATCH", "/v1/notes/1", fields: anna, body: #"{"title":"anna's"}"#)
            let listed = try await world.server.command("identities", "ls", "--format", "json")
            let items = try JSONValue.parse(Array(listed.output.utf8))["items"]?.array ?? []
            let id = try #require(items.first { $0["waiting"] == 1 }?["id"]?.string)
            try await #expect(world.server.command("identities", "ls").output.contains(id))

            let asked = try await world.server.command("identities", "forget", id)
            #expect(asked.status == 1 && asked.errors.contains("1 write waits"), "\(asked.errors)")
            try await #expect(world.send("GET", "/v1/me", fields: anna).status == 200, "nothing has changed")

            let kept = try await world.server.command("identities", "forget", id, "--keep-writes")
            #expect(kept.status == 0 && kept.output.contains("waiting writes"), "\(kept.errors)")
            try await #expect(world.send("GET", "/v1/me", fields: anna).status == 504)
            _ = try await world.server.operation(waiting, reaching: "pending")

            try await #expect(world.server.command("identities", "forget", id, "--yes").status == 0)
            _ = try await world.server.operation(waiting, reaching: "cancelled")
            try await #expect(world.server.command("identities", "forget", "nobody").status == 1)
        }
    }
}
