// What is to be recorded of an operation after an attempt: one row update of the outbox, as a value (outbox.md §1.3).

/// Where an operation goes next, and what else follows from its last attempt.
package struct Disposition: Hashable, Sendable {
    /// Where it goes.
    package var state: OperationState
    /// Why it stands there.
    package var reason: OperationReason?
    /// For `pending` when to try again; for `uncertain` when its policy may be applied. Otherwise nil.
    package var nextAttemptAt: Timestamp?
    /// Whether the attempt counts toward the limit; when false it counts as a network attempt.
    package var countsAsAnswered: Bool
    /// Until when nothing at all is replayed to the upstream (429, 503).
    package var pauseUpstreamUntil: Timestamp?
    /// Whether something answered in the upstream's place: reachability turns captive.
    package var isCaptive: Bool
    /// Until when its lane waits after it: an earlier attempt may still run, and must not undo what comes next (outbox.md §2.4).
    package var holdsLaneUntil: Timestamp?
    /// What a create became.
    package var mapping: ServerMapping?
    /// Whether it comes of a look at the upstream.
    package var countsAsProbe: Bool
    /// In words, for `lastError` and the dashboard.
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
