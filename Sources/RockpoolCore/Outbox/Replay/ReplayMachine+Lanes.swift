// The position of each operation in its lane, and its turn (docs/outbox.md#lanes).
import HeapModule

extension ReplayMachine {
    /// Stores the current state of an operation; one that has ended is removed, which releases those behind it.
    mutating func put(_ summary: OperationSummary, now: Timestamp) {
        var summary = summary
        // Recorded while the clock was ahead: before it was set back, or in another process (docs/storage.md#clock).
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
        if let before, LaneID(before.summary) != LaneID(summary) || before.summary.principal != summary.principal {
            offer(LaneID(before.summary), before.summary.principal, now: now)
        }
        if let expiresAt = summary.expiresAt { wake(summary.sequence, at: expiresAt) }
        if isAwake(entry, now: now) {
            wake(summary.sequence, at: now)
        } else if isParked(summary), summary.principal == nil {
            wake(summary.sequence, at: summary.nextAttemptAt)
        }
        offer(LaneID(summary), summary.principal, now: now)
        if isStuck(summary, now: now) || before.map({ isStuck($0.summary, now: now) }) == true { reconsiderAll(beside: summary, now: now) }
    }

    /// Re-evaluates the operations that need one with a changed state: they start or stop blocking others.
    private mutating func reconsider(_ sequences: Set<Int64>, now: Timestamp) {
        for sequence in sequences {
            if let summary = entries[sequence]?.summary { offer(LaneID(summary), summary.principal, now: now) }
        }
    }

    /// Re-evaluates all dependants of this principal's operations in this lane: a stuck operation blocks them all.
    private mutating func reconsiderAll(beside summary: OperationSummary, now: Timestamp) {
        for ticket in lanes[LaneID(summary)]?.own[summary.principal ?? ""]?.unordered ?? [] {
            if let waiting = dependants[ticket.sequence] { reconsider(waiting, now: now) }
        }
    }

    /// Returns the longest possible delay of an operation, regardless of its upstream's `Retry-After`.
    private func longestWait(of upstream: String) -> TimeSpan {
        max(Backoff.longest, contexts[upstream]?.idempotency.maxProcessing ?? .zero)
    }

    private mutating func count(_ summary: OperationSummary?, _ change: Int) {
        guard let summary, summary.state == .pending || summary.state == .uncertain || summary.state == .inflight else { return }
        gates[summary.upstream, default: UpstreamThrottle()].waiting += change
    }

    private mutating func enter(_ summary: OperationSummary, _ before: OperationSummary?) {
        if before.map({ LaneID($0) != LaneID(summary) || $0.place != summary.place || $0.principal != summary.principal }) ?? true {
            let ticket = Ticket(key: summary.place, sequence: summary.sequence)
            lanes[LaneID(summary), default: LaneQueues()].own[summary.principal ?? "", default: []].insert(ticket)
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
            // Given up by a person or its policy: its sent attempt may still run.
            let lane = LaneID(before.summary)
            if summary.state != .delivered, let moment = before.mayRunUntil {
                hold(lane, of: before.summary.principal, until: moment, now: now)
            }
            offer(lane, before.summary.principal, now: now)
            if isStuck(before.summary, now: now) { reconsiderAll(beside: before.summary, now: now) }
        }
        reconsider(dependants.removeValue(forKey: summary.sequence) ?? [], now: now)
    }

    /// Makes the lane wait for an attempt of this principal.
    mutating func hold(_ lane: LaneID, of principal: String?, until moment: Timestamp, now: Timestamp) {
        guard moment > now else { return }
        laneHolds[lane, default: LaneHold()].extend(until: moment, byProved: isProved(principal))
    }

    func isProved(_ principal: String?) -> Bool { principal.map(proved.contains) ?? false }

    /// Records that the principal is proved: from now on no unproved principal blocks it.
    mutating func prove(_ principal: String, now: Timestamp) {
        guard proved.insert(principal).inserted else { return }
        for (sequence, entry) in entries where entry.summary.principal == principal {
            // Its ticket is in the unproved queue.
            entries[sequence]?.isFront = false
            offer(LaneID(entry.summary), principal, now: now)
        }
    }

    // MARK: turn order

    /// Returns the first open operation of a principal in a lane. Tickets of removed operations are discarded when they are popped.
    private mutating func head(of lane: LaneID, _ principal: String?) -> Int64? {
        let name = principal ?? ""
        while let ticket = lanes[lane]?.own[name]?.min {
            if let summary = entries[ticket.sequence]?.summary, LaneID(summary) == lane, summary.place == ticket.key,
                summary.principal == principal
            {
                return ticket.sequence
            }
            lanes[lane]?.own[name]?.removeMin()
        }
        lanes[lane]?.own[name] = nil
        if lanes[lane]?.isEmpty == true { lanes[lane] = nil }
        return nil
    }

    /// Adds a principal's first operation to the front queue of its lane if it blocks others, then re-evaluates the lane.
    mutating func offer(_ lane: LaneID, _ principal: String?, now: Timestamp) {
        if let sequence = head(of: lane, principal), let entry = entries[sequence], !entry.isFront, isMoving(entry.summary, now: now) {
            entries[sequence]?.isFront = true
            let ticket = Ticket(key: entry.summary.place, sequence: sequence)
            if isProved(principal) { lanes[lane]?.proved.insert(ticket) } else { lanes[lane]?.unproved.insert(ticket) }
        }
        consider(lane, now: now)
    }

    /// True if the operation makes progress: it is sent, probed, or waits for time or for operations that make progress. One that waits for
    /// a person, a credential, or for a stuck operation blocks only its own principal.
    private mutating func isMoving(_ summary: OperationSummary, now: Timestamp) -> Bool {
        if isStuck(summary, now: now) { return false }
        guard summary.state == .pending else { return true }
        for need in summary.needs {
            guard let needed = entries[need]?.summary else { continue }
            let first = head(of: LaneID(needed), needed.principal).flatMap { entries[$0]?.summary } ?? needed
            if isStuck(needed, now: now) || isStuck(first, now: now) { return false }
        }
        return true
    }

    /// Returns the operations of a lane that may be sent: the first of all sendable ones, and if that is unproved, also the first proved
    /// one.
    private mutating func fronts(of lane: LaneID, now: Timestamp) -> [Int64] {
        let first = front(of: lane, \.proved, areProved: true, now: now)
        let other = front(of: lane, \.unproved, areProved: false, now: now)
        guard let first else { return other.map { [$0.sequence] } ?? [] }
        guard let other, other.key < first.key else { return [first.sequence] }
        return [first.sequence, other.sequence]
    }

    private mutating func front(
        of lane: LaneID, _ queue: WritableKeyPath<LaneQueues, Heap<Ticket>>, areProved: Bool, now: Timestamp
    ) -> Ticket? {
        while let ticket = lanes[lane]?[keyPath: queue].min {
            if let summary = entries[ticket.sequence]?.summary, LaneID(summary) == lane, summary.place == ticket.key,
                isProved(summary.principal) == areProved
            {
                if head(of: lane, summary.principal) == ticket.sequence, isMoving(summary, now: now) { return ticket }
                entries[ticket.sequence]?.isFront = false
            }
            lanes[lane]?[keyPath: queue].removeMin()
        }
        return nil
    }

    /// Schedules a re-evaluation of the operation at `moment`, or earlier.
    mutating func wake(_ sequence: Int64, at moment: Timestamp) {
        guard let entry = entries[sequence], entry.wakesAt.map({ moment < $0 }) ?? true else { return }
        entries[sequence]?.wakesAt = moment
        due.insert(Ticket(key: moment.milliseconds, sequence: sequence))
    }

    /// Issues tickets for the operations at the front of a lane: for their due time, or for their upstream's gate.
    mutating func consider(_ lane: LaneID, now: Timestamp) {
        for sequence in fronts(of: lane, now: now) { admit(sequence, lane, now: now) }
    }

    private mutating func admit(_ sequence: Int64, _ lane: LaneID, now: Timestamp) {
        guard let entry = entries[sequence], !entry.isBusy, !entry.isQueued, wants(entry.summary, now: now) else { return }
        let moment = turnComes(for: entry, now: now)
        guard moment <= now else { return wake(sequence, at: moment) }
        entries[sequence]?.isQueued = true
        gates[lane.upstream, default: UpstreamThrottle()].ready.insert(Ticket(key: ReplayOrder.rank(entry.summary), sequence: sequence))
    }

    /// True if a ticket is still valid: the operation is at the front of its lane, and due.
    mutating func isReady(_ sequence: Int64, now: Timestamp) -> Bool {
        guard let entry = entries[sequence], !entry.isBusy, fronts(of: LaneID(entry.summary), now: now).contains(sequence),
            wants(entry.summary, now: now)
        else { return false }
        return turnComes(for: entry, now: now) <= now
    }

    private func turnComes(for entry: Entry, now: Timestamp) -> Timestamp {
        if entry.notBefore <= now, isHarmless(entry.summary, now: now) { return now }
        let hold = laneHolds[LaneID(entry.summary)]?.moment(forProved: isProved(entry.summary.principal))
        return max(entry.summary.nextAttemptAt, entry.notBefore, hold ?? .distantPast)
    }

    /// True if there is something to do for a head: it is to be sent, probed, or was left in flight.
    private func wants(_ summary: OperationSummary, now: Timestamp) -> Bool {
        switch summary.state {
        case .pending: summary.needs.allSatisfy { entries[$0] == nil }
        case .inflight: true
        case .uncertain: !isStuck(summary, now: now)
        case .parked, .conflicted, .dead, .delivered, .cancelled, .superseded: false
        }
    }

    /// Uncertain, but a resend adds no second effect: it needs no probe and no wait.
    private func isHarmless(_ summary: OperationSummary, now: Timestamp) -> Bool {
        contexts[summary.upstream].map { OperationMachine.isHarmless(summary, context: $0, now: now) } ?? false
    }

    private func isStuck(_ summary: OperationSummary, now: Timestamp) -> Bool {
        OperationMachine.isStuck(summary, context: contexts[summary.upstream], now: now)
    }
}
