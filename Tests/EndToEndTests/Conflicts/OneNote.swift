// An API with one note, with configurable handling of concurrent changes (RFC 9110 §8.8, §13.1.1; RFC 6585 §3).
import RockpoolCore
import RockpoolTesting
import Synchronization

/// `/v1/notes/1` and a health check, served on a socket.
final class OneNote: Sendable {
    /// The validators of the API, and its response to a write based on an older version.
    enum Manner: Sendable {
        /// Strong ETags; a 409 with the note in place of a 412.
        case answers409
        /// Strong ETags; a 428 for a request without a condition.
        case wantsCondition
        /// Weak ETags; no checks.
        case weak
        /// No ETags; no checks.
        case lax
        /// No ETags; a 409 for a body with another `rev` than the stored one.
        case countsRevisions
        /// A 410 for every request.
        case gone
    }

    fileprivate struct State {
        var note: JSONValue = ["id": "1", "title": "base", "status": "open", "rev": 1]
        var manner: Manner
        var log: [String] = []
    }

    private let state: Mutex<State>

    init(_ manner: Manner) { state = Mutex(State(manner: manner)) }

    var note: JSONValue { state.withLock { $0.note } }
    /// Every request except probes: method, condition, and the `rev` of its body.
    var log: [String] { state.withLock { $0.log } }

    /// Applies the other side's change, and clears the log.
    func edit(_ patch: JSONValue?, becoming manner: Manner? = nil) {
        state.withLock { state in
            if let patch { Self.change(&state.note, patch) }
            state.manner = manner ?? state.manner
            state.log = []
        }
    }

    private static func change(_ note: inout JSONValue, _ patch: JSONValue) {
        let revision = (note["rev"]?.integer ?? 0) + 1
        note = note.merging(patch).merging(["id": "1", "rev": .number(JSONNumber(revision))])
    }

    /// Listens on a free port for as long as the returned server is retained.
    func start() async throws -> RawServer {
        try await RawServer.start { [self] connection in
            while true {
                let text = try await connection.read(through: "\r\n\r\n", within: .seconds(60))
                let head = MessageHead(text)
                let body = try await connection.read(bytes: head["content-length"].flatMap { Int($0) } ?? 0)
                let line = text.split(separator: " ")
                try await connection.send(answer(String(line[0]), String(line[1]), head["if-match"], try? JSONValue.parse(body)))
            }
        }
    }

    private func answer(_ method: String, _ path: String, _ condition: String?, _ body: JSONValue?) -> String {
        guard path == "/v1/notes/1" else { return Self.message(204) }
        return state.withLock { state in
            let revision = body?["rev"]?.integer.map { " rev \($0)" } ?? ""
            state.log.append(method + (condition.map { " if \($0)" } ?? "") + revision)
            if state.manner == .gone { return Self.message(410) }
            if method == "GET" { return Self.message(200, state) }
            if let refusal = state.refusal(condition, body) { return Self.message(refusal, state) }
            let nothing: JSONValue = method == "PUT" ? ["title": .null, "status": .null] : [:]
            if method == "DELETE" { state.manner = .gone } else { Self.change(&state.note, nothing.merging(body ?? [:])) }
            return Self.message(200, state)
        }
    }

    private static func message(_ status: Int, _ state: State? = nil) -> String {
        var lines = ["HTTP/1.1 \(status) OK"]
        let body = state.map { String(decoding: $0.note.serialized(), as: UTF8.self) } ?? ""
        if status != 204 { lines.append("Content-Length: \(body.utf8.count)") }
        if let tag = state?.tag, status == 200 { lines.append("ETag: \(tag)") }
        if state != nil { lines += ["Content-Type: application/json", "Cache-Control: no-cache"] }
        return lines.joined(separator: "\r\n") + "\r\n\r\n" + body
    }
}

extension OneNote.State {
    fileprivate var revision: Int64 { note["rev"]?.integer ?? 0 }

    fileprivate var tag: String? {
        switch manner {
        case .answers409, .wantsCondition: "\"r\(revision)\""
        case .weak: "W/\"r\(revision)\""
        case .lax, .countsRevisions, .gone: nil
        }
    }

    fileprivate func refusal(_ condition: String?, _ body: JSONValue?) -> Int? {
        switch manner {
        case .answers409: condition == nil || condition == tag ? nil : 409
        case .wantsCondition: condition == nil ? 428 : condition == tag ? nil : 412
        case .countsRevisions: (body?["rev"]?.integer).map { $0 == revision } ?? true ? nil : 409
        case .weak, .lax, .gone: nil
        }
    }
}
