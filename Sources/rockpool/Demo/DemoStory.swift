// The demo's story: reads cached, the API away, writes queued, a crash, the API back, every write delivered once, conflicts merged and decided,
// the disk tidied.
import HTTPTypes
import NotesAPI
import RockpoolCore

/// Tells the story and checks each step as it goes.
struct DemoStory {
    private static let shown = [
        "Cache-Status", "Proxy-Status", "Age", "ETag", "Location", "Rockpool-Operation", "Rockpool-State",
    ]

    let stage: DemoStage
    let display: Display

    /// Plays every scene. Throws `DemoFailure` at the first step that does not hold.
    func tell() async throws {
        try await readOnline()
        try await goOffline()
        let operations = try await writeOffline()
        try await crash()
        try await comeBack(operations)
        try await merge()
        try await decide()
        try await tidy()
    }

    private func readOnline() async throws {
        scene("Online: the first read is fetched and stored, the next ones come from the cache")
        try await step(.get, "/v1/assets/4096", status: 200, cache: "fwd=uri-miss; stored")
        try await step(.get, "/v1/assets/4096", status: 200, cache: "hit; ttl=")
        scene("This API says `no-cache` of its notes: stored, and asked about each time (304 costs no body)")
        try await step(.get, "/v1/notes/1", status: 200, cache: "fwd=uri-miss; stored")
        try await step(.get, "/v1/notes/1", status: 200, cache: "fwd=stale; fwd-status=304")
    }

    private func goOffline() async throws {
        await stage.notes.stop()
        scene("The API is switched off: reads go on, and say how old they are")
        try await step(.get, "/v1/notes/1", status: 200, cache: "detail=offline")
        try await step(.get, "/v1/assets/4096", status: 200, cache: "hit")
        say("What was never read is an honest 504, at once:")
        try await step(.get, "/v1/notes/2", status: 504, cache: "fwd=uri-miss")
    }

    private func writeOffline() async throws -> [String] {
        scene("Writes are taken into the outbox: on the disk before the 202")
        var operations: [String] = []
        for (method, target, json) in [
            (HTTPRequest.Method.post, "/v1/notes", #"{"title":"Written offline"}"#),
            (.put, "/v1/notes/1", #"{"title":"Low tide","body":"07:52"}"#),
            (.patch, "/v1/notes/1", #"{"body":"08:03"}"#),
        ] {
            let answer = try await step(method, target, json: json, status: 202, cache: "detail=queued")
            guard let location = answer.head.fields[.location] else { throw DemoFailure("a queued write without Location") }
            operations.append(location)
        }
        return operations
    }

    private func crash() async throws {
        scene("SIGKILL. The proxy is started again; the API is still away")
        stage.killProxy()
        try await stage.startProxy()
        try await step(.get, "/v1/notes/1", status: 200, cache: "detail=offline")
        let pending = try await stage.admin.send(.get("/v1/status")).decoded(as: StatusReport.self).pending
        guard pending == 3 else { throw DemoFailure("\(pending) operations wait, not 3") }
        say("3 operations still wait.")
    }

    private func comeBack(_ operations: [String]) async throws {
        try await stage.notes.restart()
        scene("The API is back: the outbox delivers by itself, in order, each write once")
        for location in operations { try await delivered(location) }
        for seen in stage.notes.log() where seen.hasEffect {
            say("the API applied \(seen.method.rawValue) \(seen.target)  Idempotency-Key: \(seen.key ?? "none")")
        }
        guard stage.notes.effects() == operations.count else { throw DemoFailure("the API applied \(stage.notes.effects()) writes, not 3") }
        let answer = try await step(.get, "/v1/notes/1", status: 200, cache: "fwd=")
        guard answer.body.contains("08:03") else { throw DemoFailure("the note is not what was written offline: \(answer.body)") }
        say("the note is now: \(answer.body)")
    }

    private func tidy() async throws {
        scene("Cleanup: what a run would take, then the run")
        for dryRun in [true, false] {
            let request = CleanupRequest(aggressive: true, dryRun: dryRun)
            let report = try await stage.admin.send(.post("/v1/storage/cleanup", request.body)).decoded(as: CleanupReportTable.self)
            display.print(report)
        }
    }

    /// Waits until the operation with this status document has been delivered.
    func delivered(_ location: String) async throws {
        try await stage.wait("\(location) to be delivered") {
            try await stage.send(.get, location).head.fields[HTTPField.Name("Rockpool-State") ?? .via] == "delivered"
        }
    }

    // MARK: telling

    func scene(_ title: String) {
        display.print("\n" + (display.hasColour ? Colour.heading.painted(title) : title))
    }

    func say(_ line: String) { display.print("    \(line)") }

    /// Sends a request, shows the headers that matter, and checks status and `Cache-Status`.
    @discardableResult
    func step(
        _ method: HTTPRequest.Method, _ target: String, json: String? = nil, status: Int, cache: String
    ) async throws -> DemoStage.Answer {
        let answer = try await stage.send(method, target, json: json)
        say("\(method.rawValue) \(target) → \(answer.head.status)")
        for name in Self.shown.compactMap({ HTTPField.Name($0) }) {
            if let value = answer.head.fields[name] { say("    \(name.rawName): \(value)") }
        }
        let said = HTTPField.Name("Cache-Status").flatMap { answer.head.fields[$0] } ?? ""
        guard answer.head.status == status, said.contains(cache) else {
            throw DemoFailure("\(method.rawValue) \(target): expected \(status) with \(cache), got \(answer.head.status) with \(said)")
        }
        return answer
    }
}
