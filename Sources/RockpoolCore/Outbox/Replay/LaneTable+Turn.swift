// The turn of each operation in its lane: the first ones, and whether they may be sent (docs/outbox.md#lanes,
// docs/outbox.md#principals). `ReplayOrder` states the same order slowly.
import HeapModule

extension LaneTable {
    /// Returns what an operation holds back by its own state.
    func reach(of summary: OperationSummary, now: Timestamp) -> LaneReach { summary.reach(in: contexts[summary.upstream], now: now) }

    /// What the operations behind one, and those that need it, depend on.
    func standing(of summary: OperationSummary, now: Timestamp) -> Standing {
        Standing(reach: reach(of: summary, now: now), isStuck: isStuck(summary, now: now))
    }

    struct Standing: Equatable {
        var reach: LaneReach
        var isStuck: Bool
    }

    // MARK: - The order of one client

    /// Determines the first operation of a client in a lane anew, and adds to the front queue what other clients wait for.
    /// - Parameter isChanged: true if an operation of this client, or one that it needs, has changed: then those that stand aside are sorted
    ///   in again.
    mutating func offer(_ place: LaneClient, isChanged: Bool, now: Timestamp) {
        let before = isChanged ? realign(place) : []
        sort(place, before: before, now: now)
        for sequence in before where entries[sequence]?.isAside == false { restated.insert(sequence) }
        let isEmpty = contents[place.lane]?.queues?.own[place.client]?.isEmpty == true
        if isEmpty { contents[place.lane]?.changeQueues { $0.own[place.client] = nil } }
        forgetReturned(in: place.lane)
        if contents[place.lane]?.queues?.isEmpty == true { contents[place.lane] = nil }
    }

    /// Moves the operations that stand aside back into their line.
    /// - Returns: their sequences.
    private mutating func realign(_ place: LaneClient) -> Set<Int64> {
        if case .one(let sequence)? = contents[place.lane] {
            guard entries[sequence]?.isAside == true, entries[sequence]?.summary.client == place.client else { return [] }
            entries[sequence]?.isAside = false
            return [sequence]
        }
        guard let aside = contents[place.lane]?.queues?.own[place.client]?.aside, !aside.isEmpty else { return [] }
        contents[place.lane]?.changeQueues {
            $0.own[place.client]?.aside = []
            for ticket in aside { $0.own[place.client]?.line.insert(ticket) }
        }
        for ticket in aside { entries[ticket.sequence]?.isAside = false }
        return Set(aside.map(\.sequence))
    }

    /// Puts the operations at the front of a line aside until one holds all behind it, and drops those that have left the order.
    /// - Parameter before: those that stood aside before.
    mutating func sort(_ place: LaneClient, before: Set<Int64>, now: Timestamp) {
        guard contents[place.lane]?.queues != nil else { return sortSingle(place, before: before, now: now) }
        let running = running(in: place.lane).first { entries[$0]?.summary.client == place.client }
        contents[place.lane]?.changeQueues { $0.own[place.client]?.head = running }
        if let running, let summary = entries[running]?.summary { noteFront(summary, reach: reach(of: summary, now: now), now: now) }
        // Those before the one that is being sent stand aside as before.
        while let ticket = contents[place.lane]?.queues?.own[place.client]?.line.min {
            guard let summary = entries[ticket.sequence]?.summary, LaneClient(summary) == place, summary.place == ticket.key else {
                contents[place.lane]?.changeQueues { _ = $0.own[place.client]?.line.popMin() }
                continue
            }
            if ticket.sequence == running { return }
            let isHeld = standsAside(summary, behind: contents[place.lane]?.queues?.own[place.client]?.aside ?? [], now: now)
            let reach = reach(of: summary, now: now)
            if reach.own == .lane, !isHeld {
                guard running == nil else { return }
                contents[place.lane]?.changeQueues { $0.own[place.client]?.head = ticket.sequence }
                return noteFront(summary, reach: reach, now: now)
            }
            contents[place.lane]?.changeQueues {
                _ = $0.own[place.client]?.line.popMin()
                if reach.own != .nothing { $0.own[place.client]?.aside.append(ticket) }
            }
            if reach.own == .nothing {
                leaveLine(ticket.sequence)
            } else {
                setAside(summary, reach, before: before, now: now)
            }
        }
    }

    private mutating func sortSingle(_ place: LaneClient, before: Set<Int64>, now: Timestamp) {
        guard case .one(let sequence)? = contents[place.lane] else { return }
        guard let summary = entries[sequence]?.summary, summary.lane == place.lane, entries[sequence]?.isLined == true else {
            contents[place.lane] = nil
            return
        }
        guard summary.client == place.client else { return }
        let reach = reach(of: summary, now: now)
        if reach.own == .nothing {
            leaveLine(sequence)
            contents[place.lane] = nil
        } else if reach.own == .entity || standsAside(summary, behind: [], now: now) {
            setAside(summary, reach, before: before, now: now)
        } else {
            noteFront(summary, reach: reach, now: now)
        }
    }

    /// Notes that an operation has left the order of its lane. A ticket among those that others wait for may be gone with the lane.
    private mutating func leaveLine(_ sequence: Int64) {
        entries[sequence]?.isLined = false
        entries[sequence]?.isFront = false
    }

    private mutating func setAside(_ summary: OperationSummary, _ reach: LaneReach, before: Set<Int64>, now: Timestamp) {
        entries[summary.sequence]?.isAside = true
        if !before.contains(summary.sequence) { restated.insert(summary.sequence) }
        if summary.state != .pending { noteFront(summary, reach: reach, now: now) }
    }

    /// Adds an operation to the front queue of its lane if other clients wait for it.
    private mutating func noteFront(_ summary: OperationSummary, reach: LaneReach, now: Timestamp) {
        guard reach.holdsOthers, !isStuck(summary, now: now), entries[summary.sequence]?.isFront == false else { return }
        entries[summary.sequence]?.isFront = true
        let isProved = isProved(summary.principal)
        contents[summary.lane]?.changeQueues { $0.addFront(summary, isProved: isProved) }
    }

    /// True if a pending operation builds on one that stands aside, or needs one that waits for a person or a credential.
    private func standsAside(_ summary: OperationSummary, behind aside: [ReplayMachine.Ticket], now: Timestamp) -> Bool {
        guard summary.state == .pending else { return false }
        if let entity = summary.entity,
            aside.contains(where: { $0.key < summary.place && entries[$0.sequence]?.summary.entity == entity })
        {
            return true
        }
        return summary.needs.contains { !isPassed($0, by: summary, now: now) && isBlocked($0, now: now) }
    }

    /// True if an operation need not wait any more for one that it needs: that one has ended, or only their order matters and it has left the
    /// order of its lane.
    private func isPassed(_ need: Int64, by summary: OperationSummary, now: Timestamp) -> Bool {
        guard let needed = entries[need] else { return true }
        guard summary.follows.contains(need) else { return false }
        if needed.summary.state == .pending { return needed.isAside }
        let reach = reach(of: needed.summary, now: now)
        return reach.own != .lane && !reach.holdsOthers
    }

    /// True if an open operation waits for a person or a credential, or for an operation that does.
    private func isBlocked(_ sequence: Int64, now: Timestamp) -> Bool {
        guard let entry = entries[sequence] else { return false }
        if isStuck(entry.summary, now: now) || entry.isAside && entry.summary.state == .pending { return true }
        guard let head = contents[entry.summary.lane]?.queues?.own[entry.summary.client]?.head, head != sequence,
            let first = entries[head]?.summary
        else { return false }
        return first.place < entry.summary.place && isStuck(first, now: now)
    }

    /// The first operation of a client in a lane, as `offer` has determined it.
    private func head(of place: LaneClient) -> Int64? {
        guard case .one(let sequence)? = contents[place.lane] else { return contents[place.lane]?.queues?.own[place.client]?.head }
        guard let entry = entries[sequence], LaneClient(entry.summary) == place, entry.isLined, !entry.isAside else { return nil }
        return sequence
    }

    // MARK: - What is being sent

    /// Notes that an operation is being sent.
    mutating func depart(_ summary: OperationSummary) {
        contents[summary.lane]?.changeQueues { $0.running.insert(summary.sequence) }
    }

    /// The operations of a lane that are being sent.
    private func running(in lane: LaneID) -> [Int64] {
        guard let running = contents[lane]?.queues?.running, !running.isEmpty else { return [] }
        return running.filter { isRunning($0, in: lane) }
    }

    func isRunning(_ sequence: Int64, in lane: LaneID) -> Bool {
        guard let entry = entries[sequence], entry.summary.lane == lane else { return false }
        return entry.summary.state == .inflight || entry.summary.state == .pending && entry.isBusy
    }

    /// Forgets those that are not being sent any more.
    mutating func forgetReturned(in lane: LaneID) {
        guard let running = contents[lane]?.queues?.running, !running.isEmpty else { return }
        let still = running.filter { isRunning($0, in: lane) }
        if still.count < running.count { contents[lane]?.changeQueues { $0.running = still } }
    }

    // MARK: - The order among clients

    /// Returns the operations of a lane that may be sent, or are looked for, before those of other clients: the first of all, and if that is
    /// unproved, also the first proved one.
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
                if isFront(summary, now: now) { return ticket }
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
        guard isFront(entry.summary, now: now) else {
            entries[sequence]?.isFront = false
            return nil
        }
        return ReplayMachine.Ticket(key: entry.summary.place, sequence: sequence)
    }

    /// True if other clients wait for the operation.
    private func isFront(_ summary: OperationSummary, now: Timestamp) -> Bool {
        let reach = reach(of: summary, now: now)
        guard reach.holdsOthers, !isStuck(summary, now: now) else { return false }
        return reach.own == .entity || head(of: LaneClient(summary)) == summary.sequence
    }

    // MARK: - Turns

    /// Returns the operations that may be next after a change of a client's operations in a lane: its first one, if it is apart from those of
    /// other clients, and the first ones of the lane.
    mutating func next(in place: LaneClient, now: Timestamp) -> [Int64] {
        let fronts = fronts(of: place.lane, now: now)
        guard let own = head(of: place), entries[own]?.summary.isApart == true else { return fronts }
        return fronts + [own]
    }

    /// True if a ticket is still valid: it is the operation's turn, and it is due.
    /// - Parameter sent: the operations before it in the same request.
    mutating func isReady(_ sequence: Int64, behind sent: Set<Int64> = [], now: Timestamp) -> Bool {
        guard let entry = entries[sequence], !entry.isBusy, wants(entry.summary, behind: sent, now: now), hasTurn(entry.summary, now: now)
        else {
            return false
        }
        return turnComes(for: entry, now: now) <= now
    }

    /// True if no operation of the lane comes first. The effect of an uncertain one is looked for whatever its place is.
    private mutating func hasTurn(_ summary: OperationSummary, now: Timestamp) -> Bool {
        guard summary.state == .pending else { return true }
        let place = LaneClient(summary)
        return summary.isApart ? head(of: place) == summary.sequence : fronts(of: place.lane, now: now).contains(summary.sequence)
    }

    func turnComes(for entry: ReplayMachine.Entry, now: Timestamp) -> Timestamp {
        let pause = pauses[entry.summary.upstream]?.end(for: entry.summary.client) ?? .distantPast
        if entry.notBefore <= now, isHarmless(entry.summary, now: now) { return max(now, pause) }
        let hold = holds[entry.summary.lane]?.moment(forProved: isProved(entry.summary.principal))
        return max(entry.summary.nextAttemptAt, entry.notBefore, hold ?? .distantPast, pause)
    }

    /// True if there is something to do for a head: it is to be sent, probed, or was left in flight.
    func wants(_ summary: OperationSummary, behind sent: Set<Int64> = [], now: Timestamp) -> Bool {
        switch summary.state {
        case .pending:
            summary.needs.allSatisfy { sent.contains($0) && summary.follows.contains($0) || isPassed($0, by: summary, now: now) }
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
        guard entries[summary.sequence]?.isDoubtful == true, !summary.isTelemetry, let context = contexts[summary.upstream] else {
            return false
        }
        return context.idempotency.honoured == .yes
            && !context.permitsResend(method: summary.method, firstSentAt: summary.firstSentAt, now: now)
    }

    /// Returns the longest possible delay of an operation, regardless of its upstream's `Retry-After`.
    func longestWait(of upstream: String) -> TimeSpan {
        max(Backoff.longest, contexts[upstream]?.idempotency.maxProcessing ?? .zero)
    }
}
