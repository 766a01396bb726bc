// The data of the API in the stories, and its answers (RFC 9110 §8.8, §9.3, §13.1, §15.3).
import RockpoolCore
import RockpoolTesting

/// The data of a `StoryAPI`, and its answers.
struct StoryState {
    let caching: StoryAPI.Caching
    let answers: StoryAPI.Answers
    var notes: [String: JSONValue] = [:]
    var versions: [String: Int] = [:]
    var comments: [JSONValue] = []
    var log: [StoryAPI.Request] = []
    var canned: (status: Int, body: JSONValue)?
    var slowActions = false
    /// The method of the next write that is applied and not answered.
    var loses: String?
    /// The method of the next write that is applied and answered with a failure.
    var fails: (method: String, status: Int)?
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

    func isSlow(_ request: StoryAPI.Request) -> Bool {
        request.method == "DELETE" && request.path == "/v1/notes" || slowActions && request.path.hasSuffix("/toggle")
    }

    mutating func arrive(_ request: StoryAPI.Request) -> String {
        guard request.path != "/healthz" else { return message(204) }
        log.append(request)
        let key = request.method == "GET" ? nil : request.head["idempotency-key"]
        if let key, let answer = known[key] { return answer }
        var answer = answer(request)
        if let failure = fails, failure.method == request.method {
            fails = nil
            answer = message(failure.status)
        }
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
            return answers == .nothing ? message(204) : message(200, notes[id], tag: tag(id))
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
