// The demo's scenes: cached reads, a note saved online and read offline, an outage, queued writes, a crash, recovery, delivery exactly
// once, merged and resolved conflicts, cleanup.
import HTTPTypes
import NotesAPI
import RockpoolCore

/// Runs the scenes and checks each step.
struct DemoStory {
    private static let shown = [
        "Cache-Status", "Proxy-Status", "Age", "ETag", "Location", "Rockpool-Operation", "Rockpool-State",
    ]

    let stage: DemoStage
    let display: Display

    /// Runs every scene. Throws `DemoFailure` at the first failed step.
    func tell() async throws {
        try await readOnline()
        try await saveOnline()
        try await stayOffline()
        let operations = try await writeOffline()
        try await crash()
        try await comeBack(operations)
        try await merge()
        try await decide()
        try await tidy()
    }

    private func readOnline() async throws {
        scene("Online: the first read is fetched and stored, the next ones are served from the cache")
        try await step(.get, on: "/v1/assets/4096", status: 200, cache: "fwd=uri-miss; stored")
        try await step(.get, on: "/v1/assets/4096", status: 200, cache: "hit; ttl=")
        say("The notes of this API have `no-cache`: they are stored, and revalidated each time (a 304 has no body)")
        try await step(.get, on: "/v1/notes/1", status: 200, cache: "fwd=uri-miss; stored")
        try await step(.get, on: "/v1/notes/1", status: 200, cache: "fwd=stale; fwd-status=304")
    }

    private func saveOnline() async throws {
        scene("A note is saved online, then the API is stopped: what was saved is what is read, in the note and in the list")
        try await step(.get, on: "/v1/notes", status: 200, cache: "fwd=uri-miss; stored")
        try await step(.put, on: "/v1/notes/2", json: #"{"title":"High tide","body":"13:40"}"#, status: 200, cache: "fwd=method")
        await stage.notes.stop()
        say("the API is stopped")
        for target in ["/v1/notes/2", "/v1/notes"] {
            let answer = try await step(.get, on: target, status: 200, cache: "detail=offline")
            guard answer.body.contains("13:40"), !answer.body.contains("13:31") else {
                throw DemoFailure("\(target) is not what was saved: \(answer.body)")
            }
            say("\(target) is now: \(answer.body)")
        }
    }

    private func stayOffline() async throws {
        scene("The API is still stopped: other reads continue, too, with the age of the response")
        try await step(.get, on: "/v1/notes/1", status: 200, cache: "detail=offline")
        try await step(.get, on: "/v1/assets/4096", status: 200, cache: "hit")
        say("A response that was never stored is a 504, immediately:")
        try await step(.get, on: "/v1/assets/8192", status: 504, cache: "fwd=uri-miss")
    }

    private func writeOffline() async throws -> [String] {
        scene("Writes are stored in the outbox: on disk before the 202")
        var operations: [String] = []
        for (method, target, json) in [
            (HTTPRequest.Method.post, "/v1/notes", #"{"title":"Written offline"}"#),
            (.put, "/v1/notes/1", #"{"title":"Low tide","body":"07:52"}"#),
            (.patch, "/v1/notes/1", #"{"body":"08:03"}"#),
        ] {
            let answer = try await step(method, on: target, json: json, status: 202, cache: "detail=queued")
            guard let location = answer.head.fields[.location] else { throw DemoFailure("a queued write without Location") }
            operations.append(location)
        }
        return operations
    }

    private func crash() async throws {
        scene("SIGKILL: the proxy is restarted; the API is still stopped")
        stage.killProxy()
        try await stage.startProxy()
        try await step(.get, on: "/v1/notes/1", status: 200, cache: "detail=offline")
        let pending = try await stage.admin.send(.get("/v1/status")).decoded(as: StatusReport.self).pending
        guard pending == 3 else { throw DemoFailure("\(pending.counted("operation is", "operations are")) queued, not 3") }
        say("3 operations are still queued.")
    }

    private func comeBack(_ operations: [String]) async throws {
        let (before, seenBefore) = (stage.notes.effects(), stage.notes.log().count)
        try await stage.notes.restart()
        scene("The API is restarted: the outbox delivers automatically, in order, each write once")
        for location in operations { try await delivered(location) }
        for seen in stage.notes.log().dropFirst(seenBefore) where seen.hasEffect {
            say("the API applied \(seen.method.rawValue) \(seen.target)  Idempotency-Key: \(seen.key ?? "none")")
        }
        let applied = stage.notes.effects() - before
        guard applied == operations.count else { throw DemoFailure("the API applied \(applied.counted("write")), not 3") }
        let answer = try await step(.get, on: "/v1/notes/1", status: 200, cache: "fwd=")
        guard answer.body.contains("08:03") else { throw DemoFailure("the note is not what was written offline: \(answer.body)") }
        say("the note is now: \(answer.body)")
    }

    private func tidy() async throws {
        scene("Cleanup: a dry run, then the run")
        for dryRun in [true, false] {
            let request = CleanupRequest(aggressive: true, dryRun: dryRun)
            let report = try await stage.admin.send(.post("/v1/storage/cleanup", body: request.body)).decoded(as: CleanupReportTable.self)
            display.print(report)
        }
    }

    /// Waits until the operation with this status document has been delivered.
    func delivered(_ location: String) async throws {
        try await stage.wait(for: "\(location) to be delivered") {
            try await stage.send(.get, to: location).head.fields[.rockpoolState] == "delivered"
        }
    }

    // MARK: Output

    func scene(_ title: String) {
        display.print("\n" + (display.hasColour ? Colour.heading.painted(title) : title))
    }

    func say(_ line: String) { display.print("    \(line)") }

    /// Sends a request, prints the relevant header fields, and checks the status and `Cache-Status`.
    @discardableResult
    func step(
        _ method: HTTPRequest.Method, on target: String, json: String? = nil, status: Int, cache: String
    ) async throws -> DemoStage.Answer {
        let answer = try await stage.send(method, to: target, json: json)
        say("\(method.rawValue) \(target) → \(answer.head.status)")
        for name in Self.shown.compactMap({ HTTPField.Name($0) }) {
            if let value = answer.head.fields[name] { say("    \(name.rawName): \(value)") }
        }
        let said = answer.head.fields[.cacheStatus] ?? ""
        guard answer.head.status == status, said.contains(cache) else {
            throw DemoFailure("\(method.rawValue) \(target): expected \(status) with \(cache), got \(answer.head.status) with \(said)")
        }
        return answer
    }
}

/// The demo's conflicts: one is merged field by field, the other is resolved by a person (docs/outbox.md#merging).
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
