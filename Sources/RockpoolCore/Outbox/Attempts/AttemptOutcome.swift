// The outcome of one attempt to send an operation, and how far the request got (docs/outbox.md#evidence; docs/architecture.md#rules).

/// The end of one attempt.
package enum AttemptOutcome: Hashable, Sendable {
    /// A final response head arrived, even if its body was cut off: the status line alone determines the outcome.
    case answered(ResponseHead)
    /// No final head arrived.
    case failed(TransferFailure)

    /// True if the request may still take effect: the sent request got no answer, or only one from an intermediary that lost the origin
    /// (docs/outbox.md#evidence). `QueuedWrite.lostAt` is the time of the last such attempt.
    package var mayStillRun: Bool {
        switch self {
        case .failed(let failure): failure.sent != .no
        case .answered(let head): Self.mayStillRun(answered: head.status)
        }
    }

    /// The server errors that prove that the request had no effect.
    package static let effectlessErrors = [501, 503, 505, 511]

    /// True if a response with this status leaves open that the request takes effect.
    package static func mayStillRun(answered status: Int) -> Bool {
        (500...599).contains(status) && !effectlessErrors.contains(status)
    }
}
