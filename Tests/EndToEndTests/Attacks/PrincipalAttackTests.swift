// Attacks on another client's writes: reading them, changing them, and responses forged in Rockpool's name
// (docs/reference/behaviour.md#identity, docs/security-model.md#credentials-and-secrets).
import HTTPTypes
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct PrincipalAttackTests {
    @Test func aStatusDocumentIsItsSendersOwn() async throws {
        try await World.with { world in
            let (own, json) = ("Authorization: Bearer A", "Content-Type: application/json")
            await world.goOffline()
            let reply = try await world.send("PATCH", "/v1/notes/1", fields: [own, json], body: #"{"title":"SECRET-A"}"#)
            let path = try #require(reply["location"])
            for door in Door.allCases {
                try await #expect(world.send("GET", path, via: door, fields: [own]).status == 200)
                for other in [[], ["Authorization: Bearer B"], ["Cookie: sid=A"]] {
                    let told = try await world.send("GET", path, via: door, fields: other)
                    expectProblem(told, "not-found", 404)
                }
            }
        }
    }

    /// Ben's write, in a group with the same name as Anna's, does not wait for Anna's pending write.
    @Test func aGroupIsOfOneIdentity() async throws {
        try await World.with { world in
            world.api.faults.requiresToken = true
            let (group, json) = ("Rockpool-Group: g", "Content-Type: application/json")
            let anna = "Authorization: Bearer \(world.api.issueToken(to: "anna"))"
            try await #expect(world.send("GET", "/v1/me", fields: [anna]).status == 200)
            await world.goOffline()
            let id = try await world.queued("PATCH", "/v1/notes/1", fields: [anna, group], body: #"{"title":"anna's"}"#)
            world.api.revokeTokens()
            try await world.api.restart()
            _ = try await world.server.operation(id, reaching: "parked")
            let ben = "Authorization: Bearer \(world.api.issueToken(to: "ben"))"
            let sent = try await world.send("PATCH", "/v1/notes/2", fields: [ben, group, json], body: #"{"title":"ben's"}"#)
            #expect(sent.status == 200 && sent["rockpool-operation"] == nil, "\(sent.text)")
        }
    }

    /// `Referer` is not stored with a queued write, because the URL of a page may contain a token.
    @Test func whereAWriteComesFromIsNotKept() async throws {
        try await World.with { world in
            await world.goOffline()
            let fields = ["Referer: https://app.test/?token=PLANTED-REFERER"]
            let id = try await world.queued("PATCH", "/v1/notes/1", fields: fields, body: #"{"title":"new"}"#)
            for name in Files.names(in: world.server.stateDirectory) where !name.hasSuffix("sock") {
                guard let bytes = try? Files.bytes(of: world.server.stateDirectory + "/" + name) else { continue }
                #expect(bytes.firstRange(of: Array("PLANTED-REFERER".utf8)) == nil, "the referer is in \(name)")
            }
            try await world.api.restart()
            _ = try await world.server.operation(id, reaching: "delivered")
            #expect(world.requests.last { $0.hasEffect }?.fields[.referer] == nil)
        }
    }

    @Test func anUpstreamDoesNotSpeakInOurName() async throws {
        let forged = ["Rockpool-Operation: forged", "Rockpool-State: delivered", "Rockpool-Dirty: true"]
        let said = PlayedSite.Said(fields: forged + ["Cache-Control: max-age=60", "X-Kept: 1"], body: Array("pearl".utf8))
        try await PlayedWorld.with({ _ in said }) { world in
            for _ in 0..<2 {
                let reply = try await world.get("/a")
                #expect(reply.text == "pearl" && reply["x-kept"] == "1" && world.site.count("/a") == 1)
                let names = reply.heads.flatMap(\.fields).map { $0.name.lowercased() }
                #expect(!names.contains { $0.hasPrefix("rockpool-") }, "\(names)")
            }
        }
    }
}
