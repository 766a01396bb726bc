// The identity of a lane (docs/outbox.md#lanes).

/// A lane and its upstream: two upstreams may use the same lane name.
package struct LaneID: Hashable, Sendable {
    package var upstream: String
    package var lane: String

    init(upstream: String, lane: String) { (self.upstream, self.lane) = (upstream, lane) }

    package init(_ operation: OperationSummary) {
        upstream = operation.upstream
        lane = operation.lane
    }
}
