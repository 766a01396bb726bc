// The kinds of problem documents, with status and title (docs/reference/admin-api.md#problems).

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
