// Two users write while the API is offline, the server restarts, and their tokens expire: each write is sent with its own user's token
// (docs/outbox.md#credentials, P6; docs/reference/behaviour.md#credentials *credentials*).
import Foundation
import HTTPTypes
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct RenewalTests {
    private static let json = ["Content-Type: application/json"]
    private static let refresh: JSONValue = ["path": "/v1/token", "login": "/v1/login"]

    private func logIn(_ user: String, to world: World) async throws -> (bearer: String, refresh: String) {
        let reply = try await world.send("POST", "/v1/login", fields: Self.json, body: #"{"user":"\#(user)"}"#)
        #expect(reply.status == 200, "\(reply.text)")
        let access = try #require(reply.json?["access_token"]?.string), refresh = try #require(reply.json?["refresh_token"]?.string)
        return ("Authorization: Bearer \(access)", refresh)
    }

    /// Checks that every write that took effect was sent by the user named in its body.
    private func expectOwnTokens(_ world: World, _ count: Int) throws {
        let effects = world.requests.filter(\.hasEffect)
        #expect(effects.count == count)
        for request in effects {
            let subject = TokenSubject(authorization: request.fields[.authorization] ?? "")?.subject
            #expect(try JSONValue.parse(request.body)["title"]?.string == subject)
        }
    }

    private func queueFive(_ bearers: [(String, String)], in world: World) async throws {
        for n in 0..<5 {
            for (user, bearer) in bearers {
                let body = #"{"title":"\#(user)","count":\#(n)}"#
                // Each user writes to a separate note; otherwise the writes would be in conflict.
                _ = try await world.queued("PATCH", "/v1/notes/\(user == "anna" ? 1 : 2)", fields: [bearer], body: body)
            }
        }
    }

    @Test func oneRefreshAndEverythingArrives() async throws {
        try await World.with(upstream: ["refresh": Self.refresh]) { world in
            world.api.faults.requiresToken = true
            let anna = try await logIn("anna", to: world), bert = try await logIn("bert", to: world)
            await world.goOffline()
            try await queueFive([("anna", anna.bearer), ("bert", bert.bearer)], in: world)
            world.api.expireTokens()
            try await world.api.restart()
            try await world.server.outboxIsEmpty()
            try expectOwnTokens(world, 10)
            #expect(world.arrivals("POST", "/v1/token") == 2, "one refresh for each user")
            for secret in [anna.refresh, bert.refresh] { expectNowhere(secret, world) }
        }
    }

    @Test(arguments: ["memory", "sealed"]) func afterARestart(_ credentials: String) async throws {
        try await World.with(upstream: ["queue": ["credentials": .string(credentials)]]) { world in
            world.api.faults.requiresToken = true
            let anna = "Authorization: Bearer \(world.api.issueToken(to: "anna"))"
            let bert = "Authorization: Bearer \(world.api.issueToken(to: "bert"))"
            for bearer in [anna, bert] { try await #expect(world.send("GET", "/v1/me", fields: [bearer]).status == 200) }
            await world.goOffline()
            try await queueFive([("anna", anna), ("bert", bert)], in: world)
            for bearer in [anna, bert] { expectNowhere(String(bearer.dropFirst(22)), world) }
            try await world.server.stop()
            try await world.server.start()
            for (user, bearer) in [("anna", anna), ("bert", bert)] {
                try await #expect(world.send("GET", "/v1/me", fields: [bearer]).json?["user"]?.string == user, "proved before")
            }
            expectProblem(
                try await world.send("GET", "/v1/me", fields: ["Authorization: \(Token.bearer("anna", id: 9999))"]), "offline-miss", 504)
            try await world.api.restart()
            try await world.server.outboxIsEmpty()
            try expectOwnTokens(world, 10)
        }
    }

    @Test func withoutTheClientItGoesOnOnlyWhenSealed() async throws {
        try await World.with(upstream: ["queue": ["credentials": "sealed"]]) { world in
            world.api.faults.requiresToken = true
            let anna = "Authorization: Bearer \(world.api.issueToken(to: "anna"))"
            try await #expect(world.send("GET", "/v1/me", fields: [anna]).status == 200)
            await world.goOffline()
            try await queueFive([("anna", anna)], in: world)
            try await world.server.stop()
            try await world.server.start()
            try await world.api.restart()
            try await world.server.outboxIsEmpty()
            try expectOwnTokens(world, 5)
        }
    }

    @Test func withoutARecipeTheyParkAndARefreshedTokenGoesOn() async throws {
        try await World.with { world in
            world.api.faults.requiresToken = true
            let old = try await logIn("anna", to: world).bearer
            try await #expect(world.send("GET", "/v1/me", fields: [old]).status == 200)
            await world.goOffline()
            let id = try await world.queued("PATCH", "/v1/notes/1", fields: [old], body: #"{"title":"anna"}"#)
            world.api.expireTokens()
            try await world.api.restart()
            let parked = try await world.server.operation(id, reaching: "parked")
            #expect(parked["reason"]?.string == "auth" && world.api.effects() == 0)
            try await #expect(world.server.get("/v1/status").json?["state"]?.string == "pending")
            let forged = try await world.send("GET", "/v1/me", fields: ["Authorization: \(Token.bearer("anna", id: 9999))"])
            #expect(forged.status == 401)
            let new = try await logIn("anna", to: world).bearer
            try await #expect(world.send("GET", "/v1/me", fields: [new]).status == 200)
            _ = try await world.server.operation(id, reaching: "delivered")
            try expectOwnTokens(world, 1)
        }
    }

    private func expectNowhere(_ secret: String, _ world: World, _ location: SourceLocation = #_sourceLocation) {
        let state = world.server.stateDirectory
        for name in Files.names(in: state) where !name.hasSuffix("sock") {
            guard let bytes = try? Files.bytes(of: "\(state)/\(name)") else { continue }
            #expect(Data(bytes).range(of: Data(secret.utf8)) == nil, "a secret is in \(name)", sourceLocation: location)
        }
        #expect(!world.server.errors.contains(secret), sourceLocation: location)
    }
}
