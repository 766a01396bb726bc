// What the machine remembers of an open operation besides its row.

extension ReplayMachine {
    /// The in-memory state of an open operation besides its row.
    struct Entry: Sendable {
        var summary: OperationSummary {
            _read { yield boxedSummary.value }
            _modify { yield &boxedSummary.value }
        }
        /// Boxed like `boxedJudgement`, because a table of entries has room for twice as many as it holds.
        private var boxedSummary: Boxed<OperationSummary>
        /// True while an action is not settled.
        var isBusy = false
        /// True while it counts as running at its upstream's gate.
        var hasLeft = false
        /// The earliest time of the next action after the store failed.
        var notBefore = Timestamp.distantPast
        /// The provisional disposition of its last answer, valid unless a probe shows that our own write took effect.
        var judgement: Disposition? {
            get { boxedJudgement?.value }
            set { boxedJudgement = newValue.map { Boxed($0) } }
        }
        private var boxedJudgement: Boxed<Disposition>?
        /// True while it is in the queue of its upstream's gate.
        var isQueued = false
        /// True while it is in the front queue of its lane (`LaneQueues`).
        var isFront = false
        /// The time of its earliest ticket in `due`.
        var wakesAt: Timestamp?
        /// The number of credentials that its principal had shown at its last departure.
        var credentials = 0
        /// True if an attempt was lost and a resend relies on the key.
        var isDoubtful = false
        /// Until when an unanswered, unconditional attempt may still take effect and undo the next write.
        var mayRunUntil: Timestamp?

        init(summary: OperationSummary) { boxedSummary = Boxed(summary) }

        /// Copies the state that the row does not contain. After a start there is none, so it is derived from the row.
        mutating func remember(_ before: Entry?, context: ReplayContext?, now: Timestamp) {
            isDoubtful = summary.state == .uncertain || summary.reason == .lostAnswer
            guard let before else {
                isDoubtful = isDoubtful || summary.lostAt != nil
                guard isDoubtful, summary.probes < ReplayContext.probes, let context else { return }
                mayRunUntil = context.mayRunUntil(lostAt: summary.lostAt ?? now, now: now)
                return
            }
            (isQueued, wakesAt, credentials, mayRunUntil) = (before.isQueued, before.wakesAt, before.credentials, before.mayRunUntil)
            isFront =
                before.isFront && before.summary.place == summary.place && before.summary.principal == summary.principal
                && LaneID(before.summary) == LaneID(summary)
            // A change from uncertain to pending without a reason is a permission to send it twice, by a person or the policy.
            if before.summary.state != .uncertain || summary.state != .pending { isDoubtful = isDoubtful || before.isDoubtful }
        }

        /// Shifts its waits after the wall clock was set back.
        mutating func setBack(by span: TimeSpan) {
            summary.nextAttemptAt = summary.nextAttemptAt - span
            notBefore = notBefore - span
            mayRunUntil = mayRunUntil.map { $0 - span }
        }
    }
}
