// The API's routes, in one table.
import HTTPTypes

/// One method of one path pattern. A segment `*` is variable.
struct NotesRoute: Sendable {
    let method: HTTPRequest.Method
    let pattern: [Substring]
    /// True if faults for writes apply to it.
    let isWrite: Bool
    let answer: @Sendable (inout NotesStore, Call) -> NotesReply

    static let all: [NotesRoute] = [
        read(at: "/healthz") { _, _ in NotesReply(status: 204) },
        read(at: "/v1/notes") { $0.listNotes(for: $1) },
        write(.post, at: "/v1/notes") { $0.createNote(for: $1) },
        read(at: "/v1/notes/*") { $0.readNote(for: $1) },
        write(.put, at: "/v1/notes/*") { $0.putNote(for: $1) },
        write(.patch, at: "/v1/notes/*") { $0.patchNote(for: $1) },
        write(.delete, at: "/v1/notes/*") { $0.deleteNote(for: $1) },
        read(at: "/v1/notes/*/comments") { $0.listComments(for: $1) },
        write(.post, at: "/v1/notes/*/comments") { $0.createComment(for: $1) },
        read(at: "/v1/sync/pull") { $0.pullChanges(for: $1) },
        write(.post, at: "/v1/sync/push") { $0.pushBatch(for: $1) },
        read(at: "/v1/assets/*") { $0.readAsset(for: $1) },
        read(at: "/v1/me") { $0.readAccount(for: $1) },
        read(at: "/v1/slow") { $0.answerSlowly(for: $1) },
        call(at: "/v1/login") { $0.logIn(for: $1) },
        call(at: "/v1/token") { $0.refresh(for: $1) },
        call(at: "/v1/search") { $0.search(for: $1) },
    ]

    enum Match {
        case found(NotesRoute, parameters: [String])
        /// The path's methods, as `Allow` lists them.
        case wrongMethod(allowed: String)
        case unknown
    }

    /// The route of a request; HEAD has the route of GET.
    static func find(for request: NotesRequest) -> Match {
        let segments = request.path.split(separator: "/")
        let matching = all.filter { $0.matches(segments) }
        let method = request.method == .head ? .get : request.method
        if let route = matching.first(where: { $0.method == method }) {
            return .found(route, parameters: zip(route.pattern, segments).filter { $0.0 == "*" }.map { String($0.1) })
        }
        return matching.isEmpty ? .unknown : .wrongMethod(allowed: matching.map(\.method.rawValue).joined(separator: ", "))
    }

    private func matches(_ segments: [Substring]) -> Bool {
        pattern.count == segments.count && zip(pattern, segments).allSatisfy { $0 == "*" || $0 == $1 }
    }

    private typealias Answer = @Sendable (inout NotesStore, Call) -> NotesReply

    private static func read(at pattern: String, answer: @escaping Answer) -> Self {
        Self(method: .get, pattern: pattern.split(separator: "/"), isWrite: false, answer: answer)
    }

    private static func write(_ method: HTTPRequest.Method, at pattern: String, answer: @escaping Answer) -> Self {
        Self(method: method, pattern: pattern.split(separator: "/"), isWrite: true, answer: answer)
    }

    /// A POST that changes no note and only returns a result.
    private static func call(at pattern: String, answer: @escaping Answer) -> Self {
        Self(method: .post, pattern: pattern.split(separator: "/"), isWrite: false, answer: answer)
    }
}
