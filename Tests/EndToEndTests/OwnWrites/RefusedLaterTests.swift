// Writes that the API refuses at replay, and answers that are no success (docs/outbox.md#answers, docs/outbox.md#effects).
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(5)), .serialized) struct RefusedLaterTests {
    /// Has a PUT refused that was queued offline. Returns its operation.
    private func refused(_ story: Story) async throws -> String {
        try await #expect(story.get("/v1/notes/1").status == 200)
        try await story.device.network("offline")
        let answer = try await story.write("PUT", "/v1/notes/1", Story.base.merging(["title": 7]))
        let id = try #require(answer.head["rockpool-operation"])
        try await story.device.network("auto")
        _ = try await story.device.server.operation(id, reaching: "dead")
        return id
    }

    /// B10. A read says that a write has failed; a later PUT of the same client takes its place by itself.
    @Test(arguments: Setting.all) func aCorrectionReplacesWhatWasRefused(_ setting: Setting) async throws {
        try await Story.with(setting) { story in
            let id = try await refused(story)
            let read = try await story.get("/v1/notes/1")
            #expect(read.status == 200 && read.head["rockpool-state"] == "dead", "\(read.head)")
            let link = read.head["link"] ?? ""
            #expect(link.contains(id) && link.contains(#"rel="rockpool-operation""#), "\(link)")

            try await story.write("PUT", "/v1/notes/1", Story.base.merging(["title": "corrected"]))
            try await eventually("the correction at the API", within: .seconds(10)) {
                story.api.notes["1"]?["title"] == "corrected"
            }
            try await story.device.settle(within: .seconds(20))
            let old = try await story.device.admin.send("GET", "/v1/operations/\(id)").json
            #expect(["superseded", "cancelled"].contains(old?["state"]?.string), "\(old?["state"] ?? .null)")
            let after = try await story.get("/v1/notes/1")
            #expect(after.json?["title"] == "corrected" && after.head["rockpool-state"] == nil, "\(after.head) \(after.text)")
        }
    }

    /// B10 with a deletion in place of the correction.
    @Test(arguments: Setting.all) func aDeletionReplacesWhatWasRefused(_ setting: Setting) async throws {
        try await Story.with(setting) { story in
            _ = try await refused(story)
            try await story.write("DELETE", "/v1/notes/1")
            try await eventually("the deletion at the API", within: .seconds(10)) { story.api.notes["1"] == nil }
        }
    }

    /// B10 with a PATCH: what was refused does not hold it, and its client gets the API's own answer.
    @Test(arguments: Setting.all) func aPatchIsSentPastWhatWasRefused(_ setting: Setting) async throws {
        try await Story.with(setting) { story in
            _ = try await refused(story)
            let answer = try await story.write("PATCH", "/v1/notes/1", ["status": "closed"])
            #expect(answer.status == 200 && answer.head["rockpool-operation"] == nil, "\(answer.status) \(answer.head)")
            #expect(story.api.notes["1"]?["status"] == "closed")
        }
    }

    /// Answers that report a failure with a status of success.
    static let failures: [(status: Int, body: JSONValue)] = [
        (200, ["errors": [["message": "title is taken"]]]), (200, ["success": false]),
        (207, ["responses": [["href": "/v1/notes/1", "status": 422]]]),
    ]

    /// B8. Such an answer never becomes the copy.
    @Test(arguments: Setting.all, failures.indices) func anErrorBodyIsNeverServedAsTheNote(_ setting: Setting, _ failure: Int) async throws
    {
        try await Story.with(setting) { story in
            let answer = Self.failures[failure]
            try await #expect(story.get("/v1/notes/1").status == 200)
            try await story.device.network("offline")
            let write = try await story.write("PATCH", "/v1/notes/1", ["title": "mine"])
            let id = try #require(write.head["rockpool-operation"])
            story.api.answerPatches(answer)
            try await story.device.network("auto")
            let operation = try await eventualValue("a result of \(id)") {
                let operation = try await story.device.admin.send("GET", "/v1/operations/\(id)").json
                return ["pending", "inflight"].contains(operation?["state"]?.string) ? nil : operation
            }
            let end = (operation["state"]?.string, operation["reason"]?.string)
            #expect(answer.status == 207 ? end == ("dead", "rejected") : end.0 == "delivered", "\(operation)")
            if answer.status == 200 {
                let log = try await story.device.admin.send("GET", "/v1/sync/log?limit=200").json?["items"]?.array ?? []
                let note = log.first { $0["operation"]?.string == id && $0["event"]?.string == "delivered" }
                #expect(note?["detail"]?.string?.isEmpty == false, "delivered with a warning: \(log)")
            }
            try await story.device.network("offline")
            let read = try await story.get("/v1/notes/1")
            #expect(read.status == 200 && read.json?["id"] == "1" && read.json?["status"] == "open", "\(read.text)")
            #expect(["errors", "success", "responses"].allSatisfy { read.json?[$0] == nil }, "\(read.text)")
        }
    }

    /// B8 live: the answer is the client's, but not the copy.
    @Test(arguments: Setting.all, failures.indices) func aLiveErrorBodyIsNeverServedAsTheNote(
        _ setting: Setting, _ failure: Int
    ) async throws {
        try await Story.with(setting) { story in
            let answer = Self.failures[failure]
            try await #expect(story.get("/v1/notes/1").status == 200)
            story.api.answerPatches(answer)
            try await #expect(story.write("PATCH", "/v1/notes/1", ["title": "mine"]).json == answer.body)
            try await story.device.network("offline")
            let read = try await story.get("/v1/notes/1")
            #expect(read.status == 200 && read.json?["id"] == "1" && read.json?["status"] == "open", "\(read.text)")
        }
    }
}
