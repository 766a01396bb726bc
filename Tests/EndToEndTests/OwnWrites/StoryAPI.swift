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

    /// The time that the deletion of the collection, and an action after `slowActions()`, take before they are applied.
    static let slowTime = Duration.milliseconds(800)

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

    /// Makes every further action slow.
    func slowActions() { state.withLock { $0.slowActions = true } }

    /// Applies the next request of a method, except probes, and ends the connection within the head of the answer, which no client takes for a stale
    /// connection.
    func loseNext(_ method: String) { state.withLock { $0.loses = method } }

    /// Applies the next request of a method and answers it with a failure, as a gateway does that has lost its origin.
    func failNext(_ method: String, with status: Int) { state.withLock { $0.fails = (method, status) } }

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
                if state.withLock({ $0.isSlow(request) }) { try await Task.sleep(for: Self.slowTime) }
                let (answer, isLost) = state.withLock { state in
                    let isLost = request.method == state.loses && request.path != "/healthz"
                    if isLost { state.loses = nil }
                    return (state.arrive(request), isLost)
                }
                if isLost {
                    try await connection.send(String(answer.prefix(12)))
                    return await connection.close()
                }
                try await connection.send(answer)
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
