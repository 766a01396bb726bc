// The demo's conflicts: one that merges by itself, field by field, and one that a person is asked about (outbox.md §1.6).
import HTTPTypes
import NotesAPI
import RockpoolCore

extension DemoStory {
    /// Two change other fields, and one they share that is a set: nobody need be asked.
    func merge() async throws {
        scene("Away again. We change a note, and so does somebody else at the API: another field, and the tags")
        let location = try await meet(#"{"status":"seen","tags":["ours"]}"#, ["title": "Low tide, corrected", "tags": ["theirs"]])
        try await delivered(location)
        let conflict = try await conflict("closed")
        try await expect(conflict, "merged by field-merge", [#""title":"Low tide, corrected""#, #""status":"seen""#, "ours", "theirs"])
    }

    /// Two change one text of which the configuration says `ask`.
    func decide() async throws {
        scene("And again: both change the body, of which the configuration says `ask`")
        let location = try await meet(#"{"body":"09:00"}"#, ["body": "08:45"])
        try await stage.wait("the conflict to be open") {
            try await stage.admin.send(.get("/v1/status")).decoded(as: StatusReport.self).conflicts == 1
        }
        let open = try await conflict("open")
        display.print([open.fields])
        say("POST /v1/conflicts/\(open.report.id)/resolve {\"resolution\": \"mine\"}")
        let call = AdminCall.post("/v1/conflicts/\(open.report.id)/resolve", .map([.init("resolution", .text("mine"))]))
        _ = try await stage.admin.send(call)
        try await delivered(location)
        let closed = try await conflict("closed")
        guard closed.report.id == open.report.id else { throw DemoFailure("another conflict was decided: \(closed.report.id)") }
        try await expect(closed, "mine by a person", ["09:00"])
        say("08:45 is kept: rockpool conflicts undo \(closed.report.id)")
    }

    /// Our patch waits while somebody else's is applied; then the API is back. Gives our operation's status document.
    private func meet(_ ours: String, _ theirs: JSONValue) async throws -> String {
        try await step(.get, "/v1/notes/1", status: 200, cache: "fwd=")
        await stage.notes.stop()
        let answer = try await step(.patch, "/v1/notes/1", json: ours, status: 202, cache: "detail=queued")
        guard let location = answer.head.fields[.location] else { throw DemoFailure("a queued write without Location") }
        guard let note = stage.notes.edit(note: "1", theirs) else { throw DemoFailure("the API has lost the note") }
        say("meanwhile at the API, by somebody else: ETag \(note.etag), \(String(decoding: theirs.serialized(), as: UTF8.self))")
        try await stage.notes.restart()
        return location
    }

    /// The newest conflict in this state.
    private func conflict(_ state: String) async throws -> ConflictView {
        let list = try await stage.admin.send(.get("/v1/conflicts", query: ["state": state])).decoded(as: ConflictListReport.self)
        guard let newest = list.items.first else { throw DemoFailure("there is no \(state) conflict") }
        return try ConflictView(try await stage.admin.send(.get("/v1/conflicts/\(newest.id)")))
    }

    /// Shows what became of a conflict, and checks it and the note as the API has it.
    private func expect(_ conflict: ConflictView, _ outcome: String, _ texts: [String]) async throws {
        display.print([conflict.fields])
        guard conflict.report.outcome == outcome else { throw DemoFailure("the conflict is \(conflict.report.outcome), not \(outcome)") }
        let note = try await step(.get, "/v1/notes/1", status: 200, cache: "fwd=").body
        for text in texts where !note.contains(text) { throw DemoFailure("the note lacks \(text): \(note)") }
        say("\(outcome): \(note)")
    }
}
