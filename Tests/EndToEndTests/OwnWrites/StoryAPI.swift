// An API with notes, their comments and an action, with configurable caching and answers (RFC 9110 §8.8, §9.3, §13.1, §15.3).
import RockpoolCore
import RockpoolTesting
import Synchronization

/// `/v1/notes`, its items, their `toggle` and `comments`, and a health check, served on a socket that can be closed and opened again.
final class StoryAPI: Sendable {
    /// The fields of reads that decide about caching.
    enum Caching: String, CaseIterable, Sendable {
        /// Strong ETags and `max-age=600`.
        case maxAge
        /// Strong ETags and `no-cache`.
        case noCache
        /// Neither validators nor `Cache-Control`; conditions are not evaluated.
        case noValidator
    }

    /// The answer to a PUT or PATCH that was applied.
    enum Answers: String, CaseIterable, Sendable {
        /// 200 with the note and its ETag.
        case representation
        /// 204 with the ETag.
        case nothing
        /// 200 with the note.
        case withoutETag
    }

    /// One request as received.
    struct Request: Sendable {
        let method: String
        let path: String
        let head: MessageHead
        let body: JSONValue?
    }

    /// The time that the deletion of the collection takes before it is applied.
    static let slowDeletion = Duration.milliseconds(800)

    private let state: Mutex<StoryState>
    private let listener = Mutex<RawServer?>(nil)

    init(_ caching: Caching, answers: Answers = .representation) {
        state = Mutex(StoryState(caching: caching, answers: answers))
    }

    /// The notes by id.
    var notes: [String: JSONValue] { state.withLock { $0.notes } }
    /// The comments of all notes.
    var comments: [JSONValue] { state.withLock { $0.comments } }
    /// Every request except probes, in order of arrival.
    var log: [Request] { state.withLock { $0.log } }

    /// Applies somebody else's change to a note.
    func edit(_ id: String, _ patch: JSONValue) {
        state.withLock { state in
            guard let note = state.notes[id] else { return }
            state.set(id, note.merging(patch))
        }
    }

    /// Answers every further PATCH in this way and without effect; nil ends that.
    func answerPatches(_ answer: (status: Int, body: JSONValue)?) { state.withLock { $0.canned = answer } }

    /// Listens, on the same port as before if there was one. Returns the port.
    @discardableResult
    func open(port: Int = 0) async throws -> Int {
        let server = try await RawServer.start(port: port) { [self] connection in
            while true {
                let text = try await connection.read(through: "\r\n\r\n", within: .seconds(60))
                let head = MessageHead(text)
                let bytes = try await connection.read(bytes: head["content-length"].flatMap { Int($0) } ?? 0)
                let words = text.split(separator: " ", maxSplits: 2).map { String($0) }
                let request = Request(method: words[0], path: words[1], head: head, body: try? JSONValue.parse(bytes))
                if request.method == "DELETE", request.path == "/v1/notes" { try await Task.sleep(for: Self.slowDeletion) }
                try await connection.send(state.withLock { $0.arrive(request) })
            }
        }
        listener.withLock { $0 = server }
        return server.port
    }

    /// Ends the listener and every connection; the answers to requests under way are lost.
    func close() async {
        let server = listener.withLock { listener in
            defer { listener = nil }
            return listener
        }
        await server?.stop()
    }
}

/// The data of a `StoryAPI`, and its answers.
private struct StoryState {
    let caching: StoryAPI.Caching
    let answers: StoryAPI.Answers
    var notes: [String: JSONValue] = [:]
    var versions: [String: Int] = [:]
    var comments: [JSONValue] = []
    var log: [StoryAPI.Request] = []
    var canned: (status: Int, body: JSONValue)?
    private var known: [String: String] = [:]
    private var lastID = 0

    init(caching: StoryAPI.Caching, answers: StoryAPI.Answers) {
        (self.caching, self.answers) = (caching, answers)
        for title in ["first", "second", "third"] { _ = create(["title": .string(title), "status": "open", "count": 5, "done": false]) }
    }

    mutating func set(_ id: String, _ note: JSONValue) {
        notes[id] = note.merging(["id": .string(id)])
        versions[id, default: 0] += 1
    }

    private mutating func create(_ note: JSONValue) -> String {
        lastID += 1
        set(String(lastID), note)
        return String(lastID)
    }

    mutating func arrive(_ request: StoryAPI.Request) -> String {
        guard request.path != "/healthz" else { return message(204) }
        log.append(request)
        let key = request.method == "GET" ? nil : request.head["idempotency-key"]
        if let key, let answer = known[key] { return answer }
        let answer = answer(request)
        if let key, answer.hasPrefix("HTTP/1.1 2") { known[key] = answer }
        return answer
    }

    private mutating func answer(_ request: StoryAPI.Request) -> String {
        let segments = request.path.split(separator: "/").map { String($0) }
        guard segments.starts(with: ["v1", "notes"]) else { return message(404) }
        guard segments.count > 2 else { return answerCollection(request) }
        let id = segments[2]
        guard let note = notes[id] else { return message(404) }
        switch (request.method, segments.count > 3 ? segments[3] : "") {
        case ("POST", "toggle"):
            set(id, note.merging(["done": .bool(note["done"] != true)]))
            return message(200, notes[id], tag: tag(id))
        case ("POST", "comments"):
            comments.append((request.body ?? [:]).merging(["id": .string("c\(comments.count + 1)"), "note": .string(id)]))
            return message(201, comments.last, tag: "\"c\(comments.count)\"", ["Location: \(request.path)/c\(comments.count)"])
        case ("GET", ""): return message(200, note, tag: tag(id), reading)
        default: return change(id, note, request)
        }
    }

    private mutating func change(_ id: String, _ note: JSONValue, _ request: StoryAPI.Request) -> String {
        if request.method == "PATCH", let canned { return message(canned.status, canned.body) }
        if let condition = request.head["if-match"], caching != .noValidator, condition != tag(id) { return message(412) }
        if let title = request.body?["title"], title.string == nil { return message(422, ["error": "title must be a string"]) }
        switch request.method {
        case "DELETE":
            notes[id] = nil
            return message(204)
        case "PUT": set(id, request.body ?? [:])
        case "PATCH": set(id, note.merging(request.body ?? [:]))
        default: return message(405)
        }
        switch answers {
        case .representation: return message(200, notes[id], tag: tag(id))
        case .nothing: return message(204, tag: tag(id))
        case .withoutETag: return message(200, notes[id])
        }
    }

    private mutating func answerCollection(_ request: StoryAPI.Request) -> String {
        switch request.method {
        case "GET":
            let list = notes.sorted { (Int($0.key) ?? 0) < (Int($1.key) ?? 0) }.map(\.value)
            return message(200, .array(list), tag: "\"all-\(versions.values.reduce(0, +))-\(list.count)\"", reading)
        case "POST":
            let id = create(request.body ?? [:])
            return message(201, notes[id], tag: tag(id), ["Location: /v1/notes/\(id)"])
        case "DELETE":
            notes = [:]
            return message(204)
        default: return message(405)
        }
    }

    private func tag(_ id: String) -> String { "\"\(id)-\(versions[id] ?? 0)\"" }

    private var reading: [String] {
        switch caching {
        case .maxAge: ["Cache-Control: max-age=600"]
        case .noCache: ["Cache-Control: no-cache"]
        case .noValidator: []
        }
    }

    private func message(_ status: Int, _ body: JSONValue? = nil, tag: String? = nil, _ fields: [String] = []) -> String {
        let text = body.map { String(decoding: $0.serialized(), as: UTF8.self) } ?? ""
        var lines = ["HTTP/1.1 \(status) X"] + fields
        if let tag, caching != .noValidator { lines.append("ETag: \(tag)") }
        if body != nil { lines.append("Content-Type: application/json") }
        if status != 204 { lines.append("Content-Length: \(text.utf8.count)") }
        return lines.joined(separator: "\r\n") + "\r\n\r\n" + text
    }
}
