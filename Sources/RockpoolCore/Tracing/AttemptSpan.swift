// The span of one sending of a queued write (docs/guide/operating.md#traces).
import HTTPTypes

/// An attempt to deliver a queued write, in the trace of the request that queued it.
package struct AttemptSpan: Hashable, Sendable {
    package let traceID: String
    package let spanID: String
    /// The span in which the write was queued.
    package let parentID: String
    /// The operation, and the number of this attempt, from 1.
    package let operation: String
    package let number: Int
    package let method: String
    /// The URL, with secret parameters redacted.
    package let url: String
    package let upstream: String
    package let startedAt: Timestamp
    package var endedAt: Timestamp
    /// The status of the answer; nil without one.
    package var status: Int?
    /// What failed; nil with an answer.
    package var error: String?

    /// Begins an attempt. The request that it sends has to carry `outgoing`.
    /// - Parameter spanID: a new id, from a random number.
    /// - Returns: nil if the write carries no `traceparent`, or one of a trace that is not recorded.
    package init?(_ operation: QueuedWrite, sending request: RequestHead, startedAt: Timestamp, spanID: UInt64) {
        let values = operation.request.fields[values: .traceparent]
        guard values.count == 1, let queued = TraceContext(values[0]), queued.isSampled else { return nil }
        (traceID, parentID) = (queued.traceID, queued.spanID)
        self.spanID = TraceContext.digits(of: spanID)
        (self.operation, number) = (operation.id, operation.answeredAttempts + operation.networkAttempts + 1)
        (method, url) = (request.method.rawValue, SecretParameters.redacted(url: request.url))
        (upstream, self.startedAt, endedAt) = (operation.upstream, startedAt, startedAt)
    }

    /// The context of the request to the upstream.
    package var outgoing: TraceContext { TraceContext(traceID: traceID, spanID: spanID, isSampled: true) }
}
