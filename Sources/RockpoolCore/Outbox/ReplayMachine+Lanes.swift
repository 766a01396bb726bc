// Where each operation stands in its lane, and when its turn comes (outbox.md §1.8, §2.6).
import HeapModule

extension ReplayMachine {
    /// Takes an operation as it stands now; one that has ended leaves, and makes way for those behind it.
    mutating func put(_ summary: OperationSummary, now: Timestamp) {
        var summary = summary
        // Written under a clock that was ahead, before it was set back or in another run (storage.md §7).
        if summary.nextAttemptAt > now + longestWait(of: summary.upstream) { summary.nextAttemptAt = now }
        returned(summary.sequence)
        let before = entries[summary.sequence]
        count(before?.summary, -1)
        guard !summary.state.hasEnded else { return leave(summary, before, now: now) }
        var entry = Entry(summary: summary)
        entry.remember(before, context: contexts[summary.upstream], now: now)
        entries[summary.sequence] = entry
        count(summary, 1)
        enter(summary, before?.summary)
        if let before, LaneID(before.summary) != LaneID(summary) { consider(LaneID(before.summary), now: now) }
        if let expiresAt = summary.expiresAt { wake(summary.sequence, at: expiresAt) }
        if isAwake(entry) { wake(summary.sequence, at: now) }
        consider(LaneID(summary), now: now)
    }

    /// No operation is put off for longer, whatever its upstream says.
    private func longestWait(of upstream: String) -> TimeSpan {
        max(Backoff.longest, contexts[upstream]?.idempotency.maxProcessing ?? .zero)
    }

    private mutating func count(_ summary: OperationSummary?, _ change: Int) {
        guard let summary, summary.state == .pending || summary.state == .uncertain || summary.state == .inflight else { return }
        gates[summary.upstream, default: UpstreamGate()].waiting += change
    }

    private mutating func enter(_ summary: OperationSummary, _ before: OperationSummary?) {
        if before.map({ LaneID($0) != LaneID(summary) || $0.place != summary.place }) ?? true {
            lanes[LaneID(summary), default: []].insert(Ticket(key: summary.place, sequence: summary.sequence))
        }
        if before?.needs != summary.needs {
            for need in summary.needs { dependants[need, default: []].insert(summary.sequence) }
        }
        if let principal = summary.principal {
            if isParked(summary) {
                parked[principal, default: []].insert(summary.sequence)
            } else {
                parked[principal]?.remove(summary.sequence)
            }
        }
    }

    private mutating func leave(_ summary: OperationSummary, _ before: Entry?, now: Timestamp) {
        entries[summary.sequence] = nil
        if let principal = summary.principal { parked[principal]?.remove(summary.sequence) }
        for need in before?.summary.needs ?? [] {
            dependants[need]?.remove(summary.sequence)
            if dependants[need]?.isEmpty == true { dependants[need] = nil }
        }
        if let before {
            // Given up by a person or its policy: what was sent of it may run on.
            if summary.state != .delivered, let moment = before.mayRunUntil { hold(LaneID(before.summary), until: moment, now: now) }
            consider(LaneID(before.summary), now: now)
        }
        for dependant in dependants.removeValue(forKey: summary.sequence) ?? [] {
            if let entry = entries[dependant] { consider(LaneID(entry.summary), now: now) }
        }
    }

    /// What comes next in the lane waits.
    mutating func hold(_ lane: LaneID, until moment: Timestamp, now: Timestamp) {
        if moment > max(now, laneHolds[lane] ?? now) { laneHolds[lane] = moment }
    }

    /// The first open operation of a lane. Tickets of those that have left are thrown away when they come up.
    private mutating func head(of lane: LaneID) -> Int64? {
        while let ticket = lanes[lane]?.min {
            if let summary = entries[ticket.sequence]?.summary, LaneID(summary) == lane, summary.place == ticket.key {
                return ticket.sequence
            }
            lanes[lane]?.removeMin()
        }
        lanes[lane] = nil
        return nil
    }

    /// Sees to it that the operation is looked at again at `moment`, or before.
    mutating func wake(_ sequence: Int64, at moment: Timestamp) {
        guard let entry = entries[sequence], entry.wakesAt.map({ moment < $0 }) ?? true else { return }
        entries[sequence]?.wakesAt = moment
        due.insert(Ticket(key: moment.milliseconds, sequence: sequence))
    }

    /// Gives a lane's head its ticket: for when it is due, or for the gate of its upstream.
    mutating func consider(_ lane: LaneID, now: Timestamp) {
        guard let sequence = head(of: lane), let entry = entries[sequence], !entry.isBusy, !entry.isQueued, wants(entry.summary, now: now)
        else { return }
        let moment = turnComes(for: entry, now: now)
        guard moment <= now else { return wake(sequence, at: moment) }
        entries[sequence]?.isQueued = true
        gates[lane.upstream, default: UpstreamGate()].ready.insert(Ticket(key: ReplayOrder.rank(entry.summary), sequence: sequence))
    }

    /// Whether a ticket still says the truth: its operation is the head of its lane and its time has come.
    mutating func isReady(_ sequence: Int64, now: Timestamp) -> Bool {
        guard let entry = entries[sequence], !entry.isBusy, head(of: LaneID(entry.summary)) == sequence, wants(entry.summary, now: now)
        else { return false }
        return turnComes(for: entry, now: now) <= now
    }

    private func turnComes(for entry: Entry, now: Timestamp) -> Timestamp {
        if entry.notBefore <= now, isHarmless(entry.summary, now: now) { return now }
        return max(entry.summary.nextAttemptAt, entry.notBefore, laneHolds[LaneID(entry.summary)] ?? .distantPast)
    }

    /// Whether something can be done about a head: it is to be sent, looked for, or was left in flight.
    private func wants(_ summary: OperationSummary, now: Timestamp) -> Bool {
        switch summary.state {
        case .pending: summary.needs.allSatisfy { entries[$0] == nil }
        case .inflight: true
        case .uncertain: isHarmless(summary, now: now) || summary.probes < ReplayContext.probes || policyMoves(summary)
        case .parked, .conflicted, .dead, .delivered, .cancelled, .superseded: false
        }
    }

    /// Uncertain, but sending it again adds no second effect: no need to look, or to wait.
    private func isHarmless(_ summary: OperationSummary, now: Timestamp) -> Bool {
        contexts[summary.upstream].map { OperationMachine.isHarmless(summary, context: $0, now: now) } ?? false
    }

    private func policyMoves(_ summary: OperationSummary) -> Bool { contexts[summary.upstream].map { $0.uncertainPolicy != .ask } ?? false }
}
