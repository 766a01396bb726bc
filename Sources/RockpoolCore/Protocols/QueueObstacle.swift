// Writes that wait only where a route says so: a write is queued by what its body is, or not at all (docs/outbox.md#never-queued).
import HTTPTypes

/// The reason why a write is not queued by default: its client would take a 202 for something else, or its secret must not be stored.
package enum QueueObstacle: Hashable, Sendable {
    /// A media type that belongs to a protocol of its own.
    case type
    /// A call whose client needs the answer at once.
    case call
    case question, statement
    /// A statement that adds rows.
    case insertion
    case graphQL
    case lock, upload, login
    case crossSite

    /// True if no route lets such a request wait: its client has reported a failure, and does not expect a change later.
    package var isFinal: Bool { self == .statement }

    /// True if the request changes something, whatever a route says of its method.
    package var isChange: Bool { self == .statement || self == .insertion }

    /// The refusal as the end of a sentence, with the line of `routes` that helps. A GraphQL endpoint is declared by its kind. The answers of a
    /// path that only asks can be stored; one that only some bodies ask takes writes too.
    package func reason(for request: RequestHead) -> String {
        let refusal = "\(words(for: request)) is not queued"
        let match = "match: \"\(request.method.rawValue) \(request.path)\""
        let advice = "add to the upstream's routes:"
        switch self {
        case .statement: return refusal
        case .question where !Question.isAsked(at: request.path): return refusal
        case .graphQL: return "\(refusal); to queue it, \(advice) { \(match), kind: graphql }"
        case .question: return "\(refusal); to have its answers stored, \(advice) { \(match), read: true }"
        default: return "\(refusal); to queue it, \(advice) { \(match), queue: always }"
        }
    }

    /// The kind of request, as a noun for a sentence.
    private func words(for request: RequestHead) -> String {
        switch self {
        case .type: "a \(request.method.rawValue) of \(MediaType.essence(of: request.fields) ?? "")"
        case .call: "a remote procedure call"
        case .question: "a question by \(request.method.rawValue)"
        case .statement: "a statement in a query"
        case .insertion: "a statement that adds rows"
        case .graphQL: "a GraphQL request on a route that is not declared"
        case .lock: "a WebDAV lock"
        case .upload: "a step of an upload in several requests"
        case .login: "a request with a password or a grant"
        case .crossSite: "a form of another site"
        }
    }

    /// The obstacle that the head of a write shows; nil without one.
    package static func of(_ request: RequestHead) -> QueueObstacle? {
        if ["LOCK", "UNLOCK"].contains(request.method.rawValue) { return .lock }
        let parameters = FormParameter.all(ofTarget: request)
        let asked = Question.asked(by: parameters, isBody: false)
        if asked == .statement { return .statement }
        return byType(request) ?? byFields(request.fields) ?? byTarget(request, parameters) ?? (request.method == .post ? asked : nil)
            ?? (isForeignForm(request) ? .crossSite : nil)
    }

    private static func byType(_ request: RequestHead) -> QueueObstacle? {
        guard let value = request.fields[.contentType], let type = MediaType.essence(of: value) else { return nil }
        if type.hasPrefix("application/graphql") { return .graphQL }
        return WaitingType.mayWait(type, by: request.method, root: MediaTypeParameter.named("type", in: value)) ? nil : .type
    }

    private static func byFields(_ fields: HTTPFields) -> QueueObstacle? {
        for field in fields {
            switch field.name.canonicalName {
            case let name where PlainFields.calls.contains(name): return .call
            case "x-http-method-override" where ["GET", "HEAD"].contains(field.value.uppercased()): return .call
            case let name where PlainFields.uploads.contains(name): return .upload
            default: continue
            }
        }
        return nil
    }

    private static func byTarget(_ request: RequestHead, _ parameters: [FormParameter]) -> QueueObstacle? {
        let path = request.path
        if Array(path.utf8).holds("/blobs/uploads/") || parameters.contains(where: isUploadStep) { return .upload }
        // S3 deletes several objects by one POST, and lists in its answer what was deleted.
        if request.method == .post, parameters.contains(where: { $0.name == "delete" && $0.value.isEmpty }) { return .call }
        let last = path.split(separator: "/").last.map { $0.lowercased() } ?? ""
        if loginSegments.contains(last) { return .login }
        guard request.method == .post else { return nil }
        return Question.isBatch(at: path) ? .call : Question.isAsked(at: path) ? .question : nil
    }

    /// True for S3's multipart protocol and Google's resumable one, whose steps need the answer of the step before.
    private static func isUploadStep(_ parameter: FormParameter) -> Bool {
        ["uploads", "uploadId", "upload_id"].contains(parameter.name) || parameter.name == "uploadType" && parameter.value == "resumable"
    }

    /// Last segments of token endpoints and logins.
    private static let loginSegments: Set<String> = [
        "token", "login", "log-in", "log_in", "signin", "sign-in", "sign_in", "token.json", "login.json",
    ]

    /// True for a form that a page of another site sends: the browser announces it, or names the page's origin.
    private static func isForeignForm(_ request: RequestHead) -> Bool {
        let type = MediaType.essence(of: request.fields) ?? ""
        guard ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"].contains(type) else { return false }
        if let site = request.fields.value(of: "sec-fetch-site") {
            return site == "cross-site" && request.fields.value(of: "sec-fetch-mode") != "cors"
        }
        guard let origin = request.fields[.origin], MediaType.isAskedForPages(request) else { return false }
        return origin != request.origin.url
    }
}
