// The demo's conflicts: one is merged field by field, the other is resolved by a person (docs/outbox.md#merging).
import HTTPTypes
import NotesAPI
import RockpoolCore

extension DemoStory {
    /// Two writers change different fields and one shared field that is a set: the merge needs no decision.
    func merge() async throws {
        scene("Offline again: this client and another one change the same note, in different fields and in the tags")
        let location = try await meet(
            ours: #"{"status":"seen","tags":["ours"]}"#, theirs: ["title": "Low tide, corrected", "tags": ["theirs"]])
        try await delivered(location)
        let conflict = try await conflict(state: "closed")
        try await expect(
            conflict, outcome: "merged by field-merge", texts: [#""title":"Low tide, corrected""#, #""status":"seen""#, "ours", "theirs"])
    }

    /// Two writers change the same text, for which the configuration has `ask`.
    func decide() async throws {
        scene("Offline again: both clients change the body, for which the configuration has `ask`")
        let location = try await meet(ours: #"{"body":"09:00"}"#, theirs: ["body": "08:45"])
        try await stage.wait(for: "the conflict to be open") {
            try await !conflicts(state: "open").isEmpty
        }
        let open = try await conflict(state: "open")
        display.print([open.fields])
        say("POST /v1/conflicts/\(open.report.id)/resolve {\"resolution\": \"mine\"}")
        let call = AdminCall.post("/v1/conflicts/\(open.report.id)/resolve", body: .map([.init("resolution", .text("mine"))]))
        _ = try await stage.admin.send(call)
        try await delivered(location)
        let closed = try await conflict(state: "closed")
        guard closed.report.id == open.report.id else { throw DemoFailure("another conflict was resolved: \(closed.report.id)") }
        try await expect(closed, outcome: "mine by a person", texts: ["09:00"])
        say("08:45 can be restored: rockpool conflicts undo \(closed.report.id)")
    }

    /// Queues our patch while another client's is applied, then restarts the API. Returns the URL of our operation's status document.
    private func meet(ours: String, theirs: JSONValue) async throws -> String {
        try await step(.get, on: "/v1/notes/1", status: 200, cache: "fwd=")
        await stage.notes.stop()
        let answer = try await step(.patch, on: "/v1/notes/1", json: ours, status: 202, cache: "detail=queued")
        guard let location = answer.head.fields[.location] else { throw DemoFailure("a queued write without Location") }
        guard let note = stage.notes.edit(note: "1", with: theirs) else { throw DemoFailure("the API has lost the note") }
        say("meanwhile at the API, by another client: ETag \(note.etag), \(String(decoding: theirs.serialized(), as: UTF8.self))")
        try await stage.notes.restart()
        return location
    }

    /// The conflicts in this state, the newest first.
    private func conflicts(state: String) async throws -> [ConflictReport] {
        try await stage.admin.send(.get("/v1/conflicts", query: ["state": state])).decoded(as: ConflictListReport.self).items
    }

    /// The newest conflict in this state.
    private func conflict(state: String) async throws -> ConflictView {
        guard let newest = try await conflicts(state: state).first else { throw DemoFailure("there is no \(state) conflict") }
        return try ConflictView(try await stage.admin.send(.get("/v1/conflicts/\(newest.id)")))
    }

    /// Shows the resolved conflict, then checks its outcome and the API's version of the note.
    private func expect(_ conflict: ConflictView, outcome: String, texts: [String]) async throws {
        display.print([conflict.fields])
        guard conflict.report.outcome == outcome else { throw DemoFailure("the conflict is \(conflict.report.outcome), not \(outcome)") }
        let note = try await step(.get, on: "/v1/notes/1", status: 200, cache: "fwd=").body
        for text in texts where !note.contains(text) { throw DemoFailure("the note lacks \(text): \(note)") }
        say("\(outcome): \(note)")
    }
}
