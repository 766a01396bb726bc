// Selection of the operations to send: due tickets, then each upstream's ready ones as its gate permits (docs/outbox.md#priority,
// docs/outbox.md#gate).
import HeapModule

extension ReplayMachine {
    mutating func dispatch(now: Timestamp) -> [Action] {
        var actions: [Action] = []
        while let ticket = due.min, ticket.key <= now.milliseconds {
            due.removeMin()
            guard let entry = entries[ticket.sequence], entry.wakesAt?.milliseconds == ticket.key else { continue }
            entries[ticket.sequence]?.wakesAt = nil
            if !entry.isBusy { actions += woken(entry.summary, now: now) }
        }
        for upstream in gates.keys.sorted() where contexts[upstream] != nil { actions += pass(upstream, now: now) }
        return actions
    }

    /// Applies the effects of time or of a new credential to an operation.
    private mutating func woken(_ summary: OperationSummary, now: Timestamp) -> [Action] {
        if let expired = OperationMachine.expiry(of: summary, now: now) { return [move(summary, expired)] }
        if let entry = entries[summary.sequence], isAwake(entry, now: now) {
            return [move(summary, Disposition(state: .pending, nextAttemptAt: now, countsAsAnswered: false))]
        }
        if let expiresAt = summary.expiresAt, expiresAt > now { wake(summary.sequence, at: expiresAt) }
        let lane = LaneID(summary)
        if let hold = laneHolds[lane], hold.moment(forProved: false) <= now { laneHolds[lane] = nil }
        // New settings may have released it.
        offer(lane, summary.principal, now: now)
        return []
    }

    private mutating func pass(_ upstream: String, now: Timestamp) -> [Action] {
        var actions: [Action] = []
        while gates[upstream]?.mayPass(now: now) == true, let ticket = gates[upstream]?.ready.popMin() {
            guard let summary = entries[ticket.sequence]?.summary else { continue }
            entries[ticket.sequence]?.isQueued = false
            if isReady(ticket.sequence, now: now) {
                actions.append(turn(of: summary, now: now))
            } else {
                consider(LaneID(summary), now: now)
            }
        }
        return actions
    }

    /// Returns the action for an operation that is next.
    private mutating func turn(of summary: OperationSummary, now: Timestamp) -> Action {
        if let expired = OperationMachine.expiry(of: summary, now: now) { return move(summary, expired) }
        switch summary.state {
        case .pending where isForgotten(summary, now: now):
            let late = Disposition(
                state: .uncertain, reason: .lostAnswer, nextAttemptAt: now, countsAsAnswered: false,
                detail: "an answer was lost, and the upstream no longer knows its key")
            return move(summary, late)
        case .pending:
            depart(summary)
            return .send(id: summary.id, sequence: summary.sequence)
        case .uncertain:
            guard let settled = contexts[summary.upstream].flatMap({ OperationMachine.settle(summary, context: $0, now: now) }) else {
                depart(summary)
                return .look(id: summary.id, sequence: summary.sequence)
            }
            return move(summary, settled)
        case .inflight, .parked, .conflicted, .dead, .delivered, .cancelled, .superseded:
            // In flight without a sender: its outcome could not be recorded, and the write may have been applied.
            let lost = Disposition(state: .uncertain, reason: .lostAnswer, nextAttemptAt: now, countsAsAnswered: false)
            return move(summary, lost)
        }
    }

    /// True if it waits for a resend under a key that its upstream no longer stores. Without an honoured key, a person or the policy has
    /// allowed the resend.
    private func isForgotten(_ summary: OperationSummary, now: Timestamp) -> Bool {
        guard entries[summary.sequence]?.isDoubtful == true, let context = contexts[summary.upstream] else { return false }
        return context.idempotency.honoured == .yes
            && !context.permitsResend(method: summary.method, firstSentAt: summary.firstSentAt, now: now)
    }

    private mutating func depart(_ summary: OperationSummary) {
        entries[summary.sequence]?.isBusy = true
        entries[summary.sequence]?.hasLeft = true
        entries[summary.sequence]?.credentials = summary.principal.flatMap { credentials[$0] } ?? 0
        gates[summary.upstream]?.left()
    }

    /// Releases the operation's place at its gate.
    mutating func returned(_ sequence: Int64) {
        guard let entry = entries[sequence], entry.hasLeft else { return }
        entries[sequence]?.hasLeft = false
        gates[entry.summary.upstream]?.came()
    }

    private mutating func move(_ summary: OperationSummary, _ disposition: Disposition) -> Action {
        entries[summary.sequence]?.isBusy = true
        return .move(id: summary.id, sequence: summary.sequence, disposition)
    }

    /// Returns further ready operations of the same collection and principal, to be sent with `sequence` in one request, and marks them as
    /// busy. A batch takes one place at the gate, regardless of its size.
    package mutating func companions(of sequence: Int64, limit: Int, now: Timestamp) -> [OperationSummary] {
        guard let leader = entries[sequence]?.summary, leader.collection != nil else { return [] }
        var (taken, passed): ([OperationSummary], [Ticket]) = ([], [])
        while taken.count < limit, let ticket = gates[leader.upstream]?.ready.popMin() {
            guard let summary = entries[ticket.sequence]?.summary, isReady(ticket.sequence, now: now), summary.state == .pending,
                summary.collection == leader.collection, summary.principal == leader.principal
            else {
                passed.append(ticket)
                continue
            }
            entries[ticket.sequence]?.isQueued = false
            entries[ticket.sequence]?.isBusy = true
            entries[ticket.sequence]?.credentials = summary.principal.flatMap { credentials[$0] } ?? 0
            taken.append(summary)
        }
        for ticket in passed { gates[leader.upstream]?.ready.insert(ticket) }
        return taken
    }

    // MARK: Credentials

    /// Wakes parked operations of a principal that has shown a live credential.
    mutating func shown(by principal: String, now: Timestamp) {
        credentials[principal, default: 0] += 1
        for sequence in parked[principal] ?? [] { wake(sequence, at: now) }
    }

    func isParked(_ summary: OperationSummary) -> Bool { summary.state == .parked && summary.reason == .auth }

    /// True if it is parked and its principal has shown a credential since its last attempt, or if it is anonymous and its parking time is
    /// over.
    func isAwake(_ entry: Entry, now: Timestamp) -> Bool {
        guard entry.summary.principal != nil else { return isParked(entry.summary) && entry.summary.nextAttemptAt <= now }
        return isParked(entry.summary) && entry.credentials < (entry.summary.principal.flatMap { credentials[$0] } ?? 0)
    }
}
