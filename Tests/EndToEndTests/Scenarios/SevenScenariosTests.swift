// docs/guide/offline-app.md: the seven test scenarios of an offline-first app, by name, with a client that has no knowledge of the proxy.
import Foundation
import HTTPTypes
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct SevenScenariosTests {
    /// The setting for an unchanged app: optimistic replies in the form of the upstream's responses.
    static let optimistic: JSONValue = [
        "resources": [
            [
                "collection": "/v1/notes", "item": "/v1/notes/{id}", "updated_at": "/updatedAt", "offline_response": "optimistic",
            ],
            ["collection": "/v1/notes/{id}/comments", "item": "/v1/notes/{id}/comments/{comment}", "offline_response": "optimistic"],
        ]
    ]

    static let json = ["Content-Type: application/json"]

    @Test func coldStartOffline() async throws {
        try await World.with(upstream: Self.optimistic) { world in
            let before = try await world.send("GET", "/v1/notes").json
            await world.goOffline()
            try await world.server.kill()
            try await world.server.start()
            let notes = try await world.send("GET", "/v1/notes")
            #expect(notes.status == 200 && notes.json == before)
            #expect(notes["cache-status"]?.contains("offline") == true)
            expectProblem(try await world.send("GET", "/v1/notes/99"), "offline-miss", 504)
        }
    }

    @Test func offlineWhileInUse() async throws {
        try await World.with(upstream: Self.optimistic) { world in
            try await #expect(world.send("GET", "/v1/notes/1").json?["title"]?.string == "first")
            await world.goOffline()
            try await #expect(world.send("GET", "/v1/notes/1").json?["title"]?.string == "first")
            let edited = try await world.send("PATCH", "/v1/notes/1", fields: Self.json, body: #"{"title":"edited"}"#)
            #expect(edited.status == 200 && edited.json?["title"]?.string == "edited" && edited["rockpool-state"] == "pending")
            try await world.api.restart()
            try await world.server.outboxIsEmpty()
            try await #expect(world.send("GET", "/v1/notes/1").json?["title"]?.string == "edited")
            #expect(world.api.note(id: "1")?.members["title"] == "edited")
        }
    }

    @Test func offlineCRUD() async throws {
        try await World.with(upstream: Self.optimistic) { world in
            _ = try await world.send("GET", "/v1/notes")
            _ = try await world.send("GET", "/v1/notes/1")
            await world.goOffline()
            let created = try await world.send("POST", "/v1/notes", fields: Self.json, body: #"{"title":"new"}"#)
            #expect(created.status == 201)
            let local = try #require(created["rockpool-local-id"])
            #expect(local.hasPrefix("loc_") && created.json?["id"]?.string == local, "\(created.text)")
            #expect(created["location"]?.hasSuffix("/v1/notes/\(local)") == true, "\(created["location"] ?? "none")")
            try await #expect(world.send("GET", "/v1/notes/\(local)").json?["title"]?.string == "new")
            let put = try await world.send("PUT", "/v1/notes/\(local)", fields: Self.json, body: #"{"title":"newer"}"#)
            #expect(put.status == 200 && put["etag"]?.hasPrefix("\"loc-") == true)
            let comment = try await world.send(
                "POST", "/v1/notes/\(local)/comments", fields: Self.json, body: #"{"text":"hi","note":"\#(local)"}"#)
            #expect(comment.status == 201)
            try await #expect(world.send("DELETE", "/v1/notes/2").status == 204)
            try await #expect(world.send("GET", "/v1/notes/2").status == 404)
            let list = try await world.send("GET", "/v1/notes")
            #expect(list.json?.array?.map { $0["title"]?.string } == ["first", "newer"], "\(list.text)")
            #expect(list["rockpool-state"] == "pending" && list["rockpool-pending"] == "3")
            let comments = try await world.send("GET", "/v1/notes/\(local)/comments")
            #expect(comments.json?.array?.map { $0["text"]?.string } == ["hi"], "\(comments.text)")

            try await world.api.restart()
            try await world.server.outboxIsEmpty()
            let note = try #require(world.api.notes.first { $0.members["title"] == "newer" })
            #expect(world.api.notes.map(\.id) == ["1", note.id])
            // The local id stays valid for ever: the client need not learn another id.
            let again = try await world.send("GET", "/v1/notes/\(local)")
            #expect(again.json?["id"]?.string == note.id && again["content-location"]?.hasSuffix("/v1/notes/\(note.id)") == true)
            let later = try await world.send("PATCH", "/v1/notes/\(local)", fields: Self.json, body: #"{"title":"newest"}"#)
            #expect(later.status == 200 && world.api.note(id: note.id)?.members["title"] == "newest")
            for seen in world.api.log() {
                let head = seen.target + seen.fields.map { "\($0.name): \($0.value)" }.joined()
                #expect(!head.contains("loc_") && !String(decoding: seen.body, as: UTF8.self).contains("loc_"), "\(seen.target)")
            }
            try await #expect(world.send("GET", "/v1/notes/\(note.id)/comments").json?.array?.first?["note"]?.string == note.id)
        }
    }

    @Test func reconnect() async throws {
        try await World.with(upstream: Self.optimistic) { world in
            await world.goOffline()
            for n in 1...20 {
                let path = n % 2 == 0 ? "/v1/notes/1" : "/v1/notes/2"
                try await #expect(world.send("PUT", path, fields: Self.json, body: #"{"title":"\#(n)"}"#).status < 300)
            }
            try await world.api.restart()
            try await world.server.outboxIsEmpty()
            #expect(world.api.note(id: "1")?.members["title"] == "20" && world.api.note(id: "2")?.members["title"] == "19")
            for target in ["/v1/notes/1", "/v1/notes/2"] {
                let bodies = world.api.log().filter { $0.hasEffect && $0.target == target }.map { String(decoding: $0.body, as: UTF8.self) }
                let first = target.hasSuffix("1") ? 2 : 1
                #expect(bodies == stride(from: first, through: 20, by: 2).map { #"{"title":"\#($0)"}"# })
            }
            try await #expect(world.server.get("/v1/status").json?["state"]?.string == "synced")
        }
    }

    /// The conflict is reported, and no content of either side is lost; its resolution is tested elsewhere.
    @Test func conflict() async throws {
        try await World.with(upstream: Self.optimistic) { world in
            _ = try await world.send("GET", "/v1/notes/1")
            await world.goOffline()
            let mine = try await world.send("PATCH", "/v1/notes/1", fields: Self.json, body: #"{"title":"mine"}"#)
            let id = try #require(mine["rockpool-operation"])
            _ = try await world.send("PATCH", "/v1/notes/2", fields: Self.json, body: #"{"title":"other"}"#)
            world.api.edit(note: "1", with: ["title": "theirs"])
            try await world.api.restart()
            let operation = try await world.server.operation(id, reaching: "conflicted")
            #expect(operation["reason"]?.string == "edit-edit")
            #expect(world.api.note(id: "1")?.members["title"] == "theirs")
            // The conflict blocks only its own lane, and the client still reads its own write.
            try await eventually("the other note") { world.api.note(id: "2")?.members["title"] == "other" }
            try await #expect(world.send("GET", "/v1/notes/1").json?["title"]?.string == "mine")
            try await #expect(world.server.get("/v1/status").json?["conflicts"]?.integer == 1)
        }
    }

    @Test func halfOfEverythingLostAndNoDuplicates() async throws {
        try await World.with(upstream: Self.optimistic) { world in
            world.api.inject { $0.lossPercent = 50 }
            var keys: Set<String> = []
            for n in 1...40 {
                let reply = try await world.send("POST", "/v1/notes", fields: Self.json, body: #"{"title":"\#(n)"}"#)
                #expect(reply.status < 300, "\(n): \(reply.status) \(reply.text)")
                if let id = reply["rockpool-operation"] {
                    keys.insert(try #require(try await world.server.get("/v1/operations/\(id)").json?["idempotencyKey"]?.string))
                }
            }
            #expect(!keys.isEmpty)
            try await world.server.outboxIsEmpty(within: .seconds(60))
            world.api.inject { $0.lossPercent = 0 }
            for key in keys { #expect(world.api.effects(forKey: key) == 1) }
            let titles = world.api.notes.compactMap { $0.members["title"]?.string }.filter { Int($0) != nil }
            #expect(titles.count == 40 && Set(titles) == Set((1...40).map { "\($0)" }))
        }
    }

    @Test func lowStorage() async throws {
        try await World.with(upstream: Self.optimistic, storage: ["data_limit": "16 MB"]) { world in
            _ = try await world.send("GET", "/v1/notes/1")
            await world.goOffline()
            let large = #"{"title":"\#(String(repeating: "x", count: 400_000))"}"#
            var accepted = 0
            var refused: Curl?
            for _ in 0..<40 where refused == nil {
                let reply = try await world.send("POST", "/v1/notes", fields: Self.json, body: large)
                if reply.status == 201 { accepted += 1 } else { refused = reply }
            }
            expectProblem(try #require(refused), "outbox-full", 507)
            #expect(accepted > 5)
            // Reads are still served, small changes that fit are accepted or clearly refused, and no accepted change is lost.
            try await #expect(world.send("GET", "/v1/notes/1").status == 200)
            try await world.api.restart()
            try await world.server.outboxIsEmpty()
            #expect(world.api.notes.count == 2 + accepted)
        }
    }
}
