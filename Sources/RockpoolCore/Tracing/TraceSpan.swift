// The spans of one exchange (docs/guide/operating.md#traces).

/// The ids of the span of an exchange, and of the fetch within it.
package struct TraceSpan: Hashable, Sendable {
    package let traceID: String
    package let spanID: String
    /// The client's span; nil where the trace begins here.
    package let parentID: String?
    /// The span of the request to the upstream.
    package let fetchID: String

    /// Continues the trace of a client, or begins one.
    /// - Parameters:
    ///   - incoming: the client's context; nil without one.
    ///   - draw: a number of 0 to 99: a trace is begun if it is below `percent`.
    ///   - random: source of ids.
    /// - Returns: nil if the trace is not recorded.
    package init?(continuing incoming: TraceContext?, percent: Int, draw: Int, random: () -> UInt64) {
        if let incoming {
            guard incoming.isSampled else { return nil }
            (traceID, parentID) = (incoming.traceID, incoming.spanID)
        } else {
            guard draw < percent else { return nil }
            (traceID, parentID) = (TraceContext.digits(of: random()) + TraceContext.digits(of: random()), nil)
        }
        spanID = TraceContext.digits(of: random())
        fetchID = TraceContext.digits(of: random())
    }

    /// The context of the request to the upstream.
    package var outgoing: TraceContext { TraceContext(traceID: traceID, spanID: fetchID, isSampled: true) }
}
