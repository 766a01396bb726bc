// The recorded result of an operation's attempt: one row update of the outbox, as a value (docs/outbox.md#answers).

/// The next state of an operation, and the other consequences of its last attempt.
package struct Disposition: Hashable, Sendable {
    /// The next state.
    package var state: OperationState
    /// The reason for the state.
    package var reason: OperationReason?
    /// The time of the next attempt for `pending`, of the retry for `parked`, and of the next probe for `uncertain`. Otherwise nil.
    package var nextAttemptAt: Timestamp?
    /// True if the attempt counts toward the limit; otherwise it counts as a network attempt.
    package var countsAsAnswered: Bool
    /// The end of a pause in which nothing is replayed to the upstream (429, 503).
    package var pauseUpstreamUntil: Timestamp?
    /// True if something else answered in the upstream's place: reachability becomes captive.
    package var isCaptive: Bool
    /// The end of a hold on its lane: an earlier attempt may still run, and must not undo the next write (docs/outbox.md#lane-holds).
    package var holdsLaneUntil: Timestamp?
    /// The server id and URL of a created entity.
    package var mapping: ServerMapping?
    /// True if it results from a probe of the upstream.
    package var countsAsProbe: Bool
    /// The description for `lastError` and the dashboard.
    package var detail: String?

    package init(
        state: OperationState, reason: OperationReason? = nil, nextAttemptAt: Timestamp? = nil, countsAsAnswered: Bool = true,
        pauseUpstreamUntil: Timestamp? = nil, isCaptive: Bool = false, holdsLaneUntil: Timestamp? = nil, mapping: ServerMapping? = nil,
        countsAsProbe: Bool = false, detail: String? = nil
    ) {
        self.state = state
        self.reason = reason
        self.nextAttemptAt = nextAttemptAt
        self.countsAsAnswered = countsAsAnswered
        self.pauseUpstreamUntil = pauseUpstreamUntil
        self.isCaptive = isCaptive
        self.holdsLaneUntil = holdsLaneUntil
        self.mapping = mapping
        self.countsAsProbe = countsAsProbe
        self.detail = detail
    }
}
