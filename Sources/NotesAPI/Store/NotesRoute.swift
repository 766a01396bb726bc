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
        read("/healthz") { _, _ in NotesReply(status: 204) },
        read("/v1/notes") { $0.listNotes($1) },
        write(.post, "/v1/notes") { $0.createNote($1) },
        read("/v1/notes/*") { $0.readNote($1) },
        write(.put, "/v1/notes/*") { $0.putNote($1) },
        write(.patch, "/v1/notes/*") { $0.patchNote($1) },
        write(.delete, "/v1/notes/*") { $0.deleteNote($1) },
        read("/v1/notes/*/comments") { $0.listComments($1) },
        write(.post, "/v1/notes/*/comments") { $0.createComment($1) },
        read("/v1/sync/pull") { $0.pullChanges($1) },
        write(.post, "/v1/sync/push") { $0.pushBatch($1) },
        read("/v1/assets/*") { $0.readAsset($1) },
        read("/v1/me") { $0.readAccount($1) },
        read("/v1/slow") { $0.answerSlowly($1) },
        call("/v1/login") { $0.logIn($1) },
        call("/v1/token") { $0.refresh($1) },
        call("/v1/search") { $0.search($1) },
    ]

    enum Match {
        case found(NotesRoute, parameters: [String])
        /// The path's methods, as `Allow` lists them.
        case wrongMethod(allowed: String)
        case unknown
    }

    /// The route of a request; HEAD has the route of GET.
    static func find(_ request: NotesRequest) -> Match {
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

    private static func read(_ pattern: String, _ answer: @escaping Answer) -> Self {
        Self(method: .get, pattern: pattern.split(separator: "/"), isWrite: false, answer: answer)
    }

    private static func write(_ method: HTTPRequest.Method, _ pattern: String, _ answer: @escaping Answer) -> Self {
        Self(method: method, pattern: pattern.split(separator: "/"), isWrite: true, answer: answer)
    }

    /// A POST that changes no note and only returns a result.
    private static func call(_ pattern: String, _ answer: @escaping Answer) -> Self {
        Self(method: .post, pattern: pattern.split(separator: "/"), isWrite: false, answer: answer)
    }
}
