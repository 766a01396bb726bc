// Rockpool's own errors as problem documents, with cause and remedy (RFC 9457, docs/reference/admin-api.md#problems).
import HTTPTypes
package import NIOCore
package import RockpoolCore

/// One kind of problem, with its status.
package enum ProblemType: String, CaseIterable, Sendable {
    case offlineMiss = "offline-miss"
    case upstreamError = "upstream-error"
    case upstreamTimeout = "upstream-timeout"
    case notQueueable = "not-queueable"
    case outboxFull = "outbox-full"
    case noRoom = "no-room"
    case keyReused = "key-reused"
    case onlyIfCached = "only-if-cached"
    case badRequest = "bad-request"
    case headTooLarge = "head-too-large"
    case bodyTooLarge = "body-too-large"
    case forbiddenTarget = "forbidden-target"
    case loop
    case misdirected
    case unauthorized
    case notFound = "not-found"
    case methodNotAllowed = "method-not-allowed"
    case unsupportedMediaType = "unsupported-media-type"
    case conflict
    case unprocessable

    package var status: Int {
        switch self {
        case .offlineMiss, .upstreamTimeout, .onlyIfCached: 504
        case .upstreamError: 502
        case .notQueueable: 503
        case .outboxFull, .noRoom: 507
        case .keyReused, .unprocessable: 422
        case .badRequest: 400
        case .headTooLarge: 431
        case .bodyTooLarge: 413
        case .forbiddenTarget: 403
        case .loop: 508
        case .misdirected: 421
        case .unauthorized: 401
        case .notFound: 404
        case .methodNotAllowed: 405
        case .unsupportedMediaType: 415
        case .conflict: 409
        }
    }

    package var title: String {
        switch self {
        case .offlineMiss: "Not stored, and the upstream cannot be reached"
        case .upstreamError: "The upstream could not answer"
        case .upstreamTimeout: "The upstream did not answer in time"
        case .notQueueable: "This write cannot be queued"
        case .outboxFull: "The outbox is full"
        case .noRoom: "No room"
        case .keyReused: "The idempotency key was used for another request"
        case .onlyIfCached: "Not stored"
        case .badRequest: "Bad request"
        case .headTooLarge: "The request head is too large"
        case .bodyTooLarge: "The request body is too large"
        case .forbiddenTarget: "This target is not allowed"
        case .loop: "Loop detected"
        case .misdirected: "Misdirected request"
        case .unauthorized: "Unauthorized"
        case .notFound: "Not found"
        case .methodNotAllowed: "This method is not allowed here"
        case .unsupportedMediaType: "A body of this type is not taken"
        case .conflict: "Not possible in this state"
        case .unprocessable: "Not possible as asked"
        }
    }
}

/// A problem document for a client.
package struct Problem: Sendable {
    package var type: String
    package var status: Int
    package var title: String
    package var detail: String
    package var upstream: String?
    /// The RFC 9209 name of the upstream failure.
    package var error: String?
    /// Seconds after which a retry is reasonable.
    package var retryAfter: Int?
    /// The methods allowed instead, for 405 (RFC 9110 §15.5.6).
    package var allow = "GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE"
    /// Members beyond the standard ones (RFC 9457 §3.2).
    package var extensions = JSONObject()

    package init(_ type: ProblemType, detail: String, upstream: String? = nil, error: String? = nil, retryAfter: Int? = nil) {
        self.type = type.rawValue
        self.status = type.status
        self.title = type.title
        self.detail = detail
        self.upstream = upstream
        self.error = error
        self.retryAfter = retryAfter
    }

    package init(_ refusal: Refusal) {
        let known = ProblemType(rawValue: refusal.problem)
        self.type = refusal.problem
        self.status = refusal.status
        self.title = known?.title ?? "Refused"
        self.detail = refusal.detail
    }

    /// The `Proxy-Status` error of a reply for which no request was sent upstream (RFC 9209 §2.3).
    var proxyError: ProxyError {
        switch status {
        case 508: .proxyLoopDetected
        case 401, 403, 405, 421: .httpRequestDenied
        case 400, 408, 411, 413...417, 431, 501, 505: .httpRequestError
        default: .proxyInternalResponse
        }
    }

    /// The document and its head.
    package var response: (head: ResponseHead, body: ByteBuffer) {
        var members: [(String, JSONValue)] = [
            ("type", .string("urn:rockpool:problem:\(type)")), ("title", .string(title)), ("status", .number(JSONNumber(Int64(status)))),
            ("detail", .string(detail)),
        ]
        if let upstream { members.append(("upstream", .string(upstream))) }
        if let error { members.append(("error", .string(error))) }
        members += extensions.map { ($0.name, $0.value) }
        var head = ResponseHead(status: status, fields: [.contentType: "application/problem+json", .cacheControl: "no-store"])
        if let retryAfter { head.fields[.retryAfter] = String(retryAfter) }
        if status == 405 { head.fields[.allow] = allow }
        return (head, ByteBuffer(bytes: JSONValue.object(.init(members)).serialized()))
    }
}

extension Reply {
    /// A reply with a problem document.
    init(_ problem: Problem, _ trace: Trace) {
        var (head, body) = problem.response
        if trace.proxyStatus == nil { head.fields[.proxyStatus] = ProxyStatus(error: problem.proxyError).fieldValue }
        self.init(head: head, body: .bytes(body), trace: trace)
    }
}
