// The turn of each operation in its lane: the first ones, and whether they may be sent (docs/outbox.md#lanes,
// docs/outbox.md#principals).
import HeapModule

extension LaneTable {
    /// Returns the first open operation of a principal in a lane. Tickets of removed operations are discarded when they are popped.
    private mutating func head(of lane: LaneID, for principal: String?) -> Int64? {
        if case .one(let sequence)? = contents[lane] {
            guard let summary = entries[sequence]?.summary, summary.lane == lane else {
                contents[lane] = nil
                return nil
            }
            return summary.principal == principal ? sequence : nil
        }
        let name = principal ?? ""
        while let ticket = contents[lane]?.queues?.own[name]?.min {
            if let summary = entries[ticket.sequence]?.summary, summary.lane == lane, summary.place == ticket.key,
                summary.principal == principal
            {
                return ticket.sequence
            }
            contents[lane]?.changeQueues { _ = $0.own[name]?.popMin() }
        }
        contents[lane]?.changeQueues { $0.own[name] = nil }
        if contents[lane]?.queues?.isEmpty == true { contents[lane] = nil }
        return nil
    }

    /// Adds a principal's first operation to the front queue of its lane if it blocks others.
    mutating func offer(_ lane: LaneID, of principal: String?, now: Timestamp) {
        guard let sequence = head(of: lane, for: principal), let entry = entries[sequence], !entry.isFront,
            isMoving(entry.summary, now: now)
        else { return }
        entries[sequence]?.isFront = true
        let isProved = isProved(principal)
        contents[lane]?.changeQueues { $0.addFront(entry.summary, isProved: isProved) }
    }

    /// True if the operation makes progress: it is sent, probed, or waits for time or for operations that make progress. One that waits for
    /// a person, a credential, or for a stuck operation blocks only its own principal.
    private mutating func isMoving(_ summary: OperationSummary, now: Timestamp) -> Bool {
        if isStuck(summary, now: now) { return false }
        guard summary.state == .pending else { return true }
        for need in summary.needs {
            guard let needed = entries[need]?.summary else { continue }
            let first = head(of: needed.lane, for: needed.principal).flatMap { entries[$0]?.summary } ?? needed
            if isStuck(needed, now: now) || isStuck(first, now: now) { return false }
        }
        return true
    }

    /// Returns the operations of a lane that may be sent: the first of all sendable ones, and if that is unproved, also the first proved
    /// one.
    mutating func fronts(of lane: LaneID, now: Timestamp) -> [Int64] {
        let first = front(of: lane, in: \.proved, areProved: true, now: now)
        let other = front(of: lane, in: \.unproved, areProved: false, now: now)
        guard let first else { return other.map { [$0.sequence] } ?? [] }
        guard let other, other.key < first.key else { return [first.sequence] }
        return [first.sequence, other.sequence]
    }

    private mutating func front(
        of lane: LaneID, in queue: WritableKeyPath<LaneQueues, Heap<ReplayMachine.Ticket>>, areProved: Bool, now: Timestamp
    ) -> ReplayMachine.Ticket? {
        if case .one(let sequence)? = contents[lane] { return single(sequence, in: lane, areProved: areProved, now: now) }
        while let ticket = contents[lane]?.queues?[keyPath: queue].min {
            if let summary = entries[ticket.sequence]?.summary, summary.lane == lane, summary.place == ticket.key,
                isProved(summary.principal) == areProved
            {
                if head(of: lane, for: summary.principal) == ticket.sequence, isMoving(summary, now: now) { return ticket }
                entries[ticket.sequence]?.isFront = false
            }
            contents[lane]?.changeQueues { _ = $0[keyPath: queue].popMin() }
        }
        return nil
    }

    /// Returns the ticket of a lane's single operation, if it may be sent.
    private mutating func single(_ sequence: Int64, in lane: LaneID, areProved: Bool, now: Timestamp) -> ReplayMachine.Ticket? {
        guard let entry = entries[sequence], entry.isFront, entry.summary.lane == lane, isProved(entry.summary.principal) == areProved
        else { return nil }
        guard isMoving(entry.summary, now: now) else {
            entries[sequence]?.isFront = false
            return nil
        }
        return ReplayMachine.Ticket(key: entry.summary.place, sequence: sequence)
    }

    /// True if a ticket is still valid: the operation is at the front of its lane, and due.
    mutating func isReady(_ sequence: Int64, now: Timestamp) -> Bool {
        guard let entry = entries[sequence], !entry.isBusy, fronts(of: entry.summary.lane, now: now).contains(sequence),
            wants(entry.summary, now: now)
        else { return false }
        return turnComes(for: entry, now: now) <= now
    }

    func turnComes(for entry: ReplayMachine.Entry, now: Timestamp) -> Timestamp {
        if entry.notBefore <= now, isHarmless(entry.summary, now: now) { return now }
        let hold = holds[entry.summary.lane]?.moment(forProved: isProved(entry.summary.principal))
        return max(entry.summary.nextAttemptAt, entry.notBefore, hold ?? .distantPast)
    }

    /// True if there is something to do for a head: it is to be sent, probed, or was left in flight.
    func wants(_ summary: OperationSummary, now: Timestamp) -> Bool {
        switch summary.state {
        case .pending: summary.needs.allSatisfy { entries[$0] == nil }
        case .inflight: !summary.isSentElsewhere
        case .uncertain: !isStuck(summary, now: now)
        case .parked, .conflicted, .dead, .delivered, .cancelled, .superseded: false
        }
    }

    /// Uncertain, but a resend adds no second effect: it needs no probe and no wait.
    private func isHarmless(_ summary: OperationSummary, now: Timestamp) -> Bool {
        contexts[summary.upstream].map { OperationMachine.isHarmless(summary, context: $0, now: now) } ?? false
    }

    func isStuck(_ summary: OperationSummary, now: Timestamp) -> Bool {
        OperationMachine.isStuck(summary, context: contexts[summary.upstream], now: now)
    }

    /// True if it waits for a resend under a key that its upstream no longer stores. Without an honoured key, a person or the policy has
    /// allowed the resend.
    func isForgotten(_ summary: OperationSummary, now: Timestamp) -> Bool {
        guard entries[summary.sequence]?.isDoubtful == true, let context = contexts[summary.upstream] else { return false }
        return context.idempotency.honoured == .yes
            && !context.permitsResend(method: summary.method, firstSentAt: summary.firstSentAt, now: now)
    }

    /// Returns the longest possible delay of an operation, regardless of its upstream's `Retry-After`.
    func longestWait(of upstream: String) -> TimeSpan {
        max(Backoff.longest, contexts[upstream]?.idempotency.maxProcessing ?? .zero)
    }
}
