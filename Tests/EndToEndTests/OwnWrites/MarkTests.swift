// What waits is told apart: on items, in lists, and never to the API (docs/outbox.md#marks).
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct MarkTests {
    private static let upstream: JSONValue = [
        "resources": [["collection": "/v1/notes", "item": "/v1/notes/{id}", "offline_response": "optimistic", "mark": "/_sync"]]
    ]

    @Test func whatWaitsIsToldApart() async throws {
        try await World.with(seed: [["title": "1"], ["title": "2"], ["title": "3"]], upstream: Self.upstream) { world in
            for path in ["/v1/notes", "/v1/notes/1", "/v1/notes/2", "/v1/notes/3"] {
                let read = try await world.send("GET", path)
                #expect(read.status == 200 && read["rockpool-sync"] == nil && !read.text.contains("_sync"))
            }
            await world.goOffline()
            let type = ["Content-Type: application/json"]
            let created = try await world.send("POST", "/v1/notes", fields: type, body: #"{"title":"new"}"#)
            let place = try #require(created["location"])
            _ = try await world.send("PATCH", "/v1/notes/1", fields: type, body: #"{"title":"mine"}"#)
            _ = try await world.send("DELETE", "/v1/notes/2")
            for (path, state) in [(place, "pending-create"), ("/v1/notes/1", "pending-update"), ("/v1/notes/2", "pending-delete")] {
                let read = try await world.send("GET", path)
                #expect(read["rockpool-sync"] == state && !read.text.contains("_sync"), "\(path): \(read.text)")
            }
            try await #expect(world.send("GET", "/v1/notes/3")["rockpool-sync"] == nil)
            let list = try #require(try await world.send("GET", "/v1/notes").json?.array)
            let marks = list.map { [$0["title"]?.string ?? "", $0["_sync"]?.string ?? "-"] }
            #expect(marks == [["mine", "pending-update"], ["3", "-"], ["new", "pending-create"]], "\(marks)")

            // The entry as it was listed, sent back.
            var entry = try #require(list.first)
            entry["title"] = "again"
            let put = try await world.send("PUT", "/v1/notes/1", fields: type, body: String(decoding: entry.serialized(), as: UTF8.self))
            #expect((200...202).contains(put.status) && !put.text.contains("_sync"), "\(put.text)")
            try await world.api.restart()
            try await world.server.outboxIsEmpty()
            entry["title"] = "at once"
            _ = try await world.send("PUT", "/v1/notes/1", fields: type, body: String(decoding: entry.serialized(), as: UTF8.self))
            try await eventually("the API has it") { world.api.note(id: "1")?.members["title"] == "at once" }
            let sent = world.api.log().map { String(decoding: $0.body, as: UTF8.self) }
            #expect(!sent.contains { $0.contains("_sync") }, "\(sent)")
            try await #expect(!world.send("GET", "/v1/notes").text.contains("_sync"))
        }
    }
}
