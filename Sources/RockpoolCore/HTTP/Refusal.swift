// The reason why a message is rejected, with the data of the error response (RFC 9110 §15, RFC 9457; docs/reference/admin-api.md#problems).

/// A message rejected on receipt. Its connection is closed after the error response.
package struct Refusal: Error, Hashable, Sendable {
    /// The status of the error response: 4xx for a client's fault, 502 for an upstream's.
    package var status: Int
    /// The part after `urn:rockpool:problem:` in the `type` of the error response.
    package var problem: String
    /// One readable sentence. Contains no credential, and only short excerpts of the message.
    package var detail: String

    /// Any refusal; the common ones are below.
    package init(status: Int, problem: String, detail: String) {
        self.status = status
        self.problem = problem
        self.detail = detail
    }

    /// 400: violates the grammar of HTTP or URIs.
    package static func badRequest(_ detail: String) -> Refusal {
        Refusal(status: 400, problem: "bad-request", detail: detail)
    }

    /// 505: a version of HTTP other than 1.0 and 1.1 (RFC 9110 §15.6.6).
    package static let versionNotSupported = Refusal(
        status: 505, problem: "version-not-supported", detail: "only HTTP/1.0 and HTTP/1.1 are supported")

    /// 431: more or longer fields than the limits allow (RFC 6585 §5).
    package static func headTooLarge(_ detail: String) -> Refusal {
        Refusal(status: 431, problem: "head-too-large", detail: detail)
    }

    /// 503: the client has as much under way as it may (docs/security-model.md#shares-of-clients).
    package static let busy = Refusal(
        status: 503, problem: "busy",
        detail: "as much is under way as one client, or all together, may have: try again when some of it has ended")

    /// 502: an upstream's message that must not be forwarded (RFC 9110 §15.6.3).
    package static func badGateway(_ detail: String) -> Refusal {
        Refusal(status: 502, problem: "upstream-error", detail: detail)
    }
}

extension Refusal {
    /// Returns a 422: understood, but not possible (RFC 9110 §15.5.21).
    package static func unprocessable(_ detail: String) -> Refusal {
        Refusal(status: 422, problem: "unprocessable", detail: detail)
    }

    /// Returns a 409: not possible in this state; the detail contains the reason (docs/reference/admin-api.md#problems).
    package static func conflict(_ detail: String) -> Refusal {
        Refusal(status: 409, problem: "conflict", detail: detail)
    }
}

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
    case proxyUnauthorized = "proxy-unauthorized"
    case tooManyAttempts = "too-many-attempts"
    case tooManyRepeats = "too-many-repeats"
    case tlsRequired = "tls-required"
    case notFound = "not-found"
    case methodNotAllowed = "method-not-allowed"
    case unsupportedMediaType = "unsupported-media-type"
    case busy
    case conflict
    case preconditionFailed = "precondition-failed"
    case unprocessable

    package var status: Int {
        switch self {
        case .offlineMiss, .upstreamTimeout, .onlyIfCached: 504
        case .upstreamError: 502
        case .notQueueable, .busy: 503
        case .outboxFull, .noRoom: 507
        case .keyReused, .unprocessable: 422
        case .badRequest: 400
        case .headTooLarge: 431
        case .bodyTooLarge: 413
        case .forbiddenTarget: 403
        case .loop: 508
        case .misdirected: 421
        case .unauthorized: 401
        case .proxyUnauthorized: 407
        case .tooManyAttempts, .tooManyRepeats: 429
        case .tlsRequired: 403
        case .notFound: 404
        case .methodNotAllowed: 405
        case .unsupportedMediaType: 415
        case .conflict: 409
        case .preconditionFailed: 412
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
        case .proxyUnauthorized: "The proxy wants a name and a password"
        case .tooManyAttempts: "Too many attempts"
        case .tooManyRepeats: "Too many equal writes"
        case .tlsRequired: "The connection to the proxy must be encrypted"
        case .notFound: "Not found"
        case .methodNotAllowed: "This method is not allowed here"
        case .unsupportedMediaType: "A body of this type is not taken"
        case .busy: "Too much is under way"
        case .conflict: "Not possible in this state"
        case .preconditionFailed: "The condition of this write does not hold"
        case .unprocessable: "Not possible as asked"
        }
    }
}
