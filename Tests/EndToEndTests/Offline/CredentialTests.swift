// The principal of a queued write, and the credential it needs after a restart (docs/reference/behaviour.md#credentials *credentials*).
import HTTPTypes
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct CredentialTests {
    @Test func aWriteWaitsForItsIdentityAfterARestart() async throws {
        try await World.with { world in
            world.api.faults.requiresToken = true
            let bearer = ["Authorization: Bearer \(world.api.issueToken(to: "anna"))"]
            try await #expect(world.send("GET", "/v1/me", fields: bearer).status == 200)
            await world.goOffline()
            let id = try await world.queued("PATCH", "/v1/notes/1", fields: bearer, body: #"{"title":"anna's"}"#)
            for name in Files.names(in: world.server.stateDirectory) where !name.hasSuffix("sock") {
                guard let bytes = try? Files.bytes(of: world.server.stateDirectory + "/" + name) else { continue }
                #expect(bytes.firstRange(of: Array(bearer[0].dropFirst(22).utf8)) == nil, "the token is in \(name)")
            }
            try await world.server.stop()
            try await world.server.start()
            try await world.api.restart()
            let parked = try await world.server.operation(id, reaching: "parked")
            #expect(parked["reason"]?.string == "auth" && world.api.effects() == 0)
            try await #expect(world.send("GET", "/v1/me", fields: bearer).status == 200)
            _ = try await world.server.operation(id, reaching: "delivered")
            #expect(world.api.note(id: "1")?.members["title"] == "anna's")
        }
    }

    @Test func anExpiredTokenParksAndAFreshOneGoesOn() async throws {
        try await World.with(upstream: ["identity": "header:X-User"]) { world in
            world.api.faults.requiresToken = true
            let old = "Authorization: Bearer \(world.api.issueToken(to: "anna"))"
            try await #expect(world.send("GET", "/v1/me", fields: [old, "X-User: anna"]).status == 200)
            await world.goOffline()
            let id = try await world.queued("PATCH", "/v1/notes/1", fields: [old, "X-User: anna"], body: #"{"title":"later"}"#)
            world.api.revokeTokens()
            try await world.api.restart()
            _ = try await world.server.operation(id, reaching: "parked")
            let fresh = "Authorization: Bearer \(world.api.issueToken(to: "anna"))"
            try await #expect(world.send("GET", "/v1/me", fields: [fresh, "X-User: anna"]).status == 200)
            _ = try await world.server.operation(id, reaching: "delivered")
            #expect(world.requests.last { $0.hasEffect }?.fields[.authorization] == String(fresh.dropFirst(15)))
        }
    }
}
