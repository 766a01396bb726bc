// Queued writes with actions, children and collections between them, and a line that flaps (docs/outbox.md#lanes, docs/outbox.md#effects).
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(5)), .serialized) struct OrderAndBaseTests {
    /// B4. Session guarantee: writes follow reads. The answer to an action, which shows somebody's edit, is no base of a write made before.
    @Test(arguments: Setting.all) func anActionsAnswerIsNoBaseOfTheWriteBehindIt(_ setting: Setting) async throws {
        try await Story.with(setting) { story in
            try await #expect(story.get("/v1/notes/1").status == 200)
            try await story.device.network("offline")
            try await story.write("POST", "/v1/notes/1/toggle")
            try await story.write("PUT", "/v1/notes/1", Story.base.merging(["title": "mine"]))
            story.api.edit("1", ["status": "theirs"])
            try await story.comeBack()
            try await story.expectBothSides("1", mine: ["title": "mine"], theirs: ["status": "theirs"])
        }
    }

    /// A write that arrives while an action of the same client is under way builds on the state after the action.
    @Test(arguments: Setting.all) func aWriteDuringAnActionIsNoConflictWithIt(_ setting: Setting) async throws {
        try await Story.with(setting) { story in
            try await #expect(story.get("/v1/notes/1").status == 200)
            try await story.device.network("offline")
            try await story.write("POST", "/v1/notes/1/toggle")
            story.api.slowActions()
            try await story.device.network("auto")
            try await eventually("the action is under way") {
                try await !story.device.items("/v1/operations?state=inflight").isEmpty
            }
            try await story.write("PATCH", "/v1/notes/1", ["title": "mine"], fields: ["Prefer: respond-async"])
            try await story.device.settle(within: .seconds(20))
            try await #expect(story.conflicts().isEmpty, "\(story.api.log.map { ($0.method, $0.path, $0.head["if-match"]) })")
            #expect(story.api.notes["1"]?["title"] == "mine" && story.api.notes["1"]?["done"] == true)
            // At once after a delivery, the copy that the next write builds on includes it.
            for turn in 1...5 {
                try await story.write("POST", "/v1/notes/1/toggle", fields: ["Prefer: respond-async"])
                try await story.write("PATCH", "/v1/notes/1", ["title": .string("mine \(turn)")])
            }
            try await story.device.settle(within: .seconds(20))
            try await #expect(story.conflicts().isEmpty, "\(story.api.log.map { ($0.method, $0.path, $0.head["if-match"]) })")
            #expect(story.api.notes["1"]?["title"] == "mine 5" && story.api.notes["1"]?["done"] == false)
        }
    }

    /// Session guarantee: read your writes. The answer to a write was lost; later writes do not hide its effect.
    @Test(arguments: Setting.all) func aWriteWithALostAnswerIsReadOffline(_ setting: Setting) async throws {
        try await Story.with(setting) { story in
            try await #expect(story.get("/v1/notes/1").status == 200)
            try await #expect(story.get("/v1/notes").status == 200)
            story.api.loseNext("PATCH")
            try await story.write("PATCH", "/v1/notes/1", ["title": "mine"])
            try await story.device.settle(within: .seconds(20))
            #expect(story.api.notes["1"]?["title"] == "mine")
            try await story.write("DELETE", "/v1/notes/3")
            try await story.device.network("offline")
            let titles = try await story.get("/v1/notes").json?.array?.compactMap { $0["title"]?.string }
            #expect(titles == ["mine", "second"], "\(titles ?? [])")
            try await #expect(story.get("/v1/notes/1").json?["title"] == "mine")
        }
    }

    /// The answer to an action was lost while its client waited: the state before the action is not known, and a later write of the same
    /// client is merged with the action's effect.
    @Test(arguments: Setting.all) func aWriteBehindALostActionIsNoConflictWithIt(_ setting: Setting) async throws {
        try await Story.with(setting) { story in
            try await #expect(story.get("/v1/notes/1").status == 200)
            story.api.slowActions()
            story.api.loseNext("POST")
            try await story.write("POST", "/v1/notes/1/toggle")
            try await story.write("PATCH", "/v1/notes/1", ["title": "mine"], fields: ["Prefer: respond-async"])
            try await story.write(
                "PUT", "/v1/notes/1", Story.base.merging(["id": "1", "title": "mine", "count": 6]), fields: ["Prefer: respond-async"])
            try await story.device.settle(within: .seconds(20))
            try await #expect(story.conflicts().isEmpty, "\(story.api.log.map { ($0.method, $0.path, $0.head["if-match"]) })")
            #expect(story.api.notes["1"]?["title"] == "mine" && story.api.notes["1"]?["count"] == 6)
            try await #expect(story.device.items("/v1/operations?state=all").allSatisfy { $0["state"] == "delivered" })
        }
    }

    /// The read before a queued action got no answer: the action waits for it, so that its own effect is no change of another client.
    @Test(arguments: Setting.all) func anActionIsNotSentWithoutTheReadBeforeIt(_ setting: Setting) async throws {
        try await Story.with(setting) { story in
            try await #expect(story.get("/v1/notes/1").status == 200)
            try await story.device.network("offline")
            try await story.write("POST", "/v1/notes/1/toggle")
            try await story.write("PATCH", "/v1/notes/1", ["title": "mine"])
            story.api.loseNext("GET")
            try await story.comeBack()
            let requests = story.api.log.map { $0.method + " " + $0.path }
            #expect(requests.firstIndex(of: "POST /v1/notes/1/toggle").map { requests[..<$0].count { $0 == "GET /v1/notes/1" } } == 3)
            try await #expect(story.conflicts().isEmpty, "\(requests)")
            #expect(story.api.notes["1"]?["title"] == "mine" && story.api.notes["1"]?["done"] == true)
        }
    }

    /// B5. The ETag in the answer of a child belongs to the child.
    @Test(arguments: Setting.all) func aCommentsETagIsNotThatOfItsNote(_ setting: Setting) async throws {
        try await Story.with(setting) { story in
            try await #expect(story.get("/v1/notes/1").status == 200)
            try await story.device.network("offline")
            try await story.write("POST", "/v1/notes/1/comments", ["text": "hello"])
            try await story.write("PATCH", "/v1/notes/1", ["title": "mine"])
            try await story.comeBack()
            try await #expect(story.conflicts().isEmpty, "\(story.api.log.map { ($0.method, $0.path, $0.head["if-match"]) })")
            #expect(story.api.comments.count == 1 && story.api.notes["1"]?["title"] == "mine")
            try await #expect(story.device.items("/v1/operations?state=all").allSatisfy { $0["state"] == "delivered" })
        }
    }

    /// B6. Session guarantee: monotonic writes, between a collection and its members.
    @Test(arguments: Setting.all) func aNewNoteDoesNotOvertakeTheDeletionOfAll(_ setting: Setting) async throws {
        try await Story.with(setting) { story in
            try await #expect(story.get("/v1/notes/1").status == 200)
            try await #expect(story.get("/v1/notes").status == 200)
            try await story.device.network("offline")
            try await story.write("PUT", "/v1/notes/1", Story.base.merging(["title": "mine"]))
            try await story.write("DELETE", "/v1/notes")
            try await story.write("POST", "/v1/notes", ["title": "after", "status": "open"])
            try await #expect(story.get("/v1/notes/1").status == 404, "the fold shows the order")
            try await story.comeBack()
            #expect(story.api.notes.values.map { $0["title"]?.string } == ["after"])
            let writes = story.api.log.filter { $0.method != "GET" }.map { $0.method + " " + $0.path }
            #expect(writes == ["PUT /v1/notes/1", "DELETE /v1/notes", "POST /v1/notes"])
        }
    }

    /// B13. Session guarantees: read your writes, monotonic reads, monotonic writes, over a line that is cut five times.
    @Test(arguments: Setting.all) func aFlappingLineMakesNoConflictWithOneself(_ setting: Setting) async throws {
        try await Story.with(setting) { story in
            try await #expect(story.get("/v1/notes/1").status == 200)
            let api = story.api, port = story.port
            let line = Task {
                for _ in 0..<5 {
                    try await Task.sleep(for: .milliseconds(700))
                    await api.close()
                    try await Task.sleep(for: .milliseconds(500))
                    try await api.open(port: port)
                }
            }
            var count: Int64 = 5
            let end = ContinuousClock.now + .seconds(6)
            while ContinuousClock.now < end {
                count += 1
                try await story.write("PATCH", "/v1/notes/1", ["count": .number(JSONNumber(count))])
                let seen = try await story.get("/v1/notes/1")
                #expect(seen.json?["count"]?.integer == count, "after PATCH \(count): \(seen.status) \(seen.text)")
                try await Task.sleep(for: .milliseconds(20))
            }
            try await line.value
            try await story.device.settle(within: .seconds(30))
            try await #expect(story.conflicts().isEmpty)
            #expect(story.api.notes["1"]?["count"]?.integer == count)
            try await #expect(story.device.items("/v1/operations?state=all").allSatisfy { $0["state"] == "delivered" })
        }
    }

    /// B15. Session guarantee: writes follow reads. A local ETag names what the client saw, not what became of it by a merge.
    @Test(arguments: Setting.all) func aLocalETagIsNotTheMergedVersion(_ setting: Setting) async throws {
        try await Story.with(setting) { story in
            try await #expect(story.get("/v1/notes/1").status == 200)
            try await story.device.network("offline")
            let answer = try await story.write("PATCH", "/v1/notes/1", ["title": "mine"])
            let read = try await story.get("/v1/notes/1")
            let tag = try #require(setting.promise == "optimistic" ? answer.head["etag"] : read.head["etag"])
            let seen = try #require(setting.promise == "optimistic" ? answer.json : read.json)
            #expect(tag.hasPrefix("\"loc-"), "\(tag)")
            story.api.edit("1", ["status": "theirs"])
            try await story.comeBack()
            #expect(story.api.notes["1"]?["title"] == "mine" && story.api.notes["1"]?["status"] == "theirs", "merged")

            let body = seen.merging(["title": "mine again"])
            let last = try await story.device.gateway.send("PUT", "/v1/notes/1", body, fields: ["If-Match: \(tag)"])
            try await story.device.settle(within: .seconds(20))
            #expect(last.status == 412 || (200...299).contains(last.status), "\(last.status) \(last.text)")
            #expect(story.api.notes["1"]?["status"] == "theirs", "their edit was overwritten by \(last.status)")
            #expect(story.api.notes["1"]?["title"]?.string == (last.status == 412 ? "mine" : "mine again"))
        }
    }
}
