// Items that are known from a list only: read offline at their own URLs, and the base of the next write (docs/outbox.md#listed-items).
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(5)), .serialized) struct ListedItemTests {
    /// Session guarantees: monotonic reads, read your writes.
    @Test(arguments: Setting.all) func anItemOfTheListIsReadAndWrittenAtItsOwnURL(_ setting: Setting) async throws {
        try await Story.with(setting) { story in
            try await #expect(story.get("/v1/notes").json?.array?.count == 3)
            try await story.device.network("offline")
            let read = try await story.get("/v1/notes/2")
            #expect(read.status == 200 && read.json?["title"] == "second" && read.json?["id"] == "2", "\(read.status) \(read.text)")
            #expect(read.head["rockpool-listed"] == "1" && read.head["etag"] == nil, "\(read.head)")
            try await #expect(story.get("/v1/notes/9").status == 504)

            let write = try await story.write("PATCH", "/v1/notes/2", ["title": "mine"])
            #expect(write.status == (setting.promise == "optimistic" ? 200 : 202))
            if setting.promise == "optimistic" { #expect(write.json?["status"] == "open", "the whole item: \(write.text)") }
            let again = try await story.get("/v1/notes/2")
            #expect(again.json?["title"] == "mine" && again.json?["status"] == "open" && again.head["rockpool-dirty"] == nil)
            try await story.comeBack()
            try await #expect(story.conflicts().isEmpty)
            expectSame(story.api.notes["2"], Story.base.merging(["id": "2", "title": "mine"]), setting.testDescription)
        }
    }

    /// Session guarantee: writes follow reads.
    @Test(arguments: Setting.all) func theListIsTheBaseOfAWrite(_ setting: Setting) async throws {
        try await Story.with(setting) { story in
            try await #expect(story.get("/v1/notes").status == 200)
            try await story.device.network("offline")
            try await story.write("PUT", "/v1/notes/1", Story.base.merging(["title": "mine"]))
            story.api.edit("1", ["status": "theirs"])
            try await story.comeBack()
            try await story.expectBothSides("1", mine: ["title": "mine"], theirs: ["status": "theirs"])
        }
    }

    /// Session guarantee: monotonic reads. The list was read later than the item.
    @Test(arguments: Setting.promises) func whatTheListHasShownIsReadOffline(_ promise: String) async throws {
        try await Story.with(Setting(promise: promise)) { story in
            try await #expect(story.get("/v1/notes/1").json?["status"] == "open")
            story.api.edit("1", ["status": "theirs"])
            try await #expect(story.get("/v1/notes").json?.array?.first?["status"] == "theirs")
            try await story.device.network("offline")
            try await #expect(story.get("/v1/notes/1").json?["status"] == "theirs")
        }
    }

    /// RFC 9110 §13.1.2. What a list shows exists.
    @Test func anItemOfTheListForbidsToBeCreated() async throws {
        try await Story.with(Setting(promise: "optimistic")) { story in
            try await #expect(story.get("/v1/notes").status == 200)
            try await story.device.network("offline")
            let put = try await story.device.gateway.send("PUT", "/v1/notes/2", Story.base, fields: ["If-None-Match: *"])
            #expect(put.status == 412, "\(put.status) \(put.text)")
            let tagged = try await story.device.gateway.send("PUT", "/v1/notes/2", Story.base, fields: ["If-Match: \"2-1\""])
            #expect(tagged.status == 200, "only the upstream knows the version: \(tagged.status) \(tagged.text)")
        }
    }
}
