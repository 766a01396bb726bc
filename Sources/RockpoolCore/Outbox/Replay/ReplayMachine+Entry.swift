// What the machine remembers of an open operation besides its row.

extension ReplayMachine {
    /// The in-memory state of an open operation besides its row. It lies in memory of its own, because a table of entries has room for more
    /// than it holds.
    @dynamicMemberLookup struct Entry: Sendable {
        struct Fields: Sendable {
            var summary: OperationSummary
            /// True while an action is not settled.
            var isBusy = false
            /// True while it is in the queue of its upstream's gate.
            var isQueued = false
            /// True while it is among those that other clients wait for (`LaneQueues`).
            var isFront = false
            /// True while it has a ticket in its lane: it has not left the order.
            var isLined = false
            /// True while others may pass it that do not build on it (`ClientLine`).
            var isAside = false
            /// True if an attempt was lost and a resend relies on the key.
            var isDoubtful = false
            /// The number of credentials that its principal had shown at its last departure.
            var credentials = 0
            /// How often in a row the store has refused an action.
            var refusals = 0
            /// The earliest time of the next action after the store failed.
            var notBefore = Timestamp.distantPast
            /// The time of its earliest ticket in `due`.
            var wakesAt: Timestamp?
            /// Until when an unanswered, unconditional attempt may still take effect and undo the next write.
            var mayRunUntil: Timestamp?
            /// The provisional disposition of its last answer, valid unless a probe shows that our own write took effect.
            var judgement: Boxed<Disposition>?
        }

        private var fields: Boxed<Fields>

        subscript<T>(dynamicMember path: WritableKeyPath<Fields, T>) -> T {
            _read { yield fields.value[keyPath: path] }
            _modify { yield &fields.value[keyPath: path] }
        }

        init(summary: OperationSummary) { fields = Boxed(Fields(summary: summary)) }

        /// Copies the state that the row does not contain. After a start there is none, so it is derived from the row.
        mutating func remember(_ before: Entry?, context: ReplayContext?, now: Timestamp) {
            fields.value.remember(before?.fields.value, context: context, now: now)
        }

        /// Gives it another number, and takes it out of every order in which it stands under the old one.
        mutating func renumber(to sequence: Int64) { fields.value.renumber(to: sequence) }

        /// Shifts its waits after the wall clock was set back.
        mutating func setBack(by span: TimeSpan) { fields.value.setBack(by: span) }
    }
}

extension ReplayMachine.Entry.Fields {
    fileprivate mutating func remember(_ before: Self?, context: ReplayContext?, now: Timestamp) {
        isDoubtful = summary.state == .uncertain || summary.reason == .lostAnswer
        guard let before else {
            isDoubtful = isDoubtful || summary.lostAt != nil
            guard isDoubtful, summary.probes < ReplayContext.probes, let context else { return }
            mayRunUntil = context.mayRunUntil(lostAt: summary.lostAt ?? now, now: now)
            return
        }
        (isQueued, wakesAt, credentials, mayRunUntil) = (before.isQueued, before.wakesAt, before.credentials, before.mayRunUntil)
        let isInPlace =
            before.summary.place == summary.place && before.summary.principal == summary.principal
            && LaneClient(before.summary) == LaneClient(summary)
        isFront = before.isFront && isInPlace
        isLined = before.isLined && isInPlace
        isAside = before.isAside && isInPlace
        // A change from uncertain to pending without a reason is a permission to send it twice, by a person or the policy.
        if before.summary.state != .uncertain || summary.state != .pending { isDoubtful = isDoubtful || before.isDoubtful }
    }

    fileprivate mutating func renumber(to sequence: Int64) {
        if summary.place == summary.sequence { summary.place = sequence }
        summary.sequence = sequence
        (isQueued, isFront, isLined, isAside, wakesAt) = (false, false, false, false, nil)
    }

    fileprivate mutating func setBack(by span: TimeSpan) {
        summary.nextAttemptAt = summary.nextAttemptAt - span
        notBefore = notBefore - span
        mayRunUntil = mayRunUntil.map { $0 - span }
    }
}
