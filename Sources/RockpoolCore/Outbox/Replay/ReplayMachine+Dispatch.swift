// Selection of the operations to send: due tickets, then each upstream's ready ones as its gate permits (docs/outbox.md#priority,
// docs/outbox.md#gate).
import HeapModule

extension ReplayMachine {
    mutating func dispatch(now: Timestamp) -> [Action] {
        var actions: [Action] = []
        while let ticket = due.min, ticket.key <= now.milliseconds {
            due.removeMin()
            guard let entry = lanes.entries[ticket.sequence], entry.wakesAt?.milliseconds == ticket.key else { continue }
            lanes.entries[ticket.sequence]?.wakesAt = nil
            if !entry.isBusy { actions += woken(entry.summary, now: now) }
        }
        for upstream in gates.keys.sorted() where lanes.contexts[upstream] != nil { actions += pass(upstream, now: now) }
        return actions
    }

    /// Applies the effects of time or of a new credential to an operation.
    private mutating func woken(_ summary: OperationSummary, now: Timestamp) -> [Action] {
        if let expired = OperationMachine.expiry(of: summary, now: now) { return [move(summary, by: expired)] }
        if let entry = lanes.entries[summary.sequence], waits.isAwake(entry, now: now) {
            return [move(summary, by: Disposition(state: .pending, nextAttemptAt: now, countsAsAnswered: false))]
        }
        if let expiresAt = summary.expiresAt, expiresAt > now { wake(summary.sequence, at: expiresAt) }
        lanes.expireHold(of: summary.lane, now: now)
        // New settings may have released it.
        lanes.enter(summary, after: summary, now: now)
        offer(LaneClient(summary), now: now)
        if summary.state != .pending { admit(summary.sequence, now: now) }
        return []
    }

    private mutating func pass(_ upstream: String, now: Timestamp) -> [Action] {
        releaseTests(of: upstream, now: now)
        var actions = passReady(upstream, now: now)
        // What was kept back just now may be the one that is to be tried.
        if let test = gates[upstream]?.nextTest, test <= now {
            releaseTests(of: upstream, now: now)
            actions += passReady(upstream, now: now)
        }
        return actions
    }

    private mutating func passReady(_ upstream: String, now: Timestamp) -> [Action] {
        var actions: [Action] = []
        while gates[upstream]?.mayPass(now: now) == true, let ticket = gates[upstream]?.ready.popMin() {
            guard let summary = lanes.entries[ticket.sequence]?.summary else { continue }
            if summary.state == .pending, gates[upstream]?.keepsBack(ticket, of: summary) == true { continue }
            lanes.entries[ticket.sequence]?.isQueued = false
            if lanes.isReady(ticket.sequence, now: now) {
                actions.append(turn(of: summary, now: now))
            } else {
                consider(LaneClient(summary), now: now)
                // An effect is looked for whatever the order is: later, if the lane is held now.
                if summary.state != .pending { admit(summary.sequence, now: now) }
            }
        }
        return actions
    }

    /// Lets one write of each paused route pass whose time has come.
    private mutating func releaseTests(of upstream: String, now: Timestamp) {
        guard gates[upstream]?.mayPass(now: now) == true else { return }
        for (route, watch) in gates[upstream]?.watches ?? [:] where watch.isTestDue(now: now) {
            while let ticket = gates[upstream]?.watches[route]?.held.popMin() {
                guard lanes.isReady(ticket.sequence, now: now) else {
                    lanes.entries[ticket.sequence]?.isQueued = false
                    if let summary = lanes.entries[ticket.sequence]?.summary { consider(LaneClient(summary), now: now) }
                    continue
                }
                gates[upstream]?.watches[route]?.test(now: now)
                gates[upstream]?.urged.insert(ticket.sequence)
                gates[upstream]?.ready.insert(ticket)
                break
            }
        }
    }

    /// Returns the action for an operation that is next.
    private mutating func turn(of summary: OperationSummary, now: Timestamp) -> Action {
        if let expired = OperationMachine.expiry(of: summary, now: now) { return move(summary, by: expired) }
        switch summary.state {
        case .pending where lanes.isForgotten(summary, now: now):
            let late = Disposition(
                state: .uncertain, reason: .lostAnswer, nextAttemptAt: now, countsAsAnswered: false,
                detail: "an answer was lost, and the upstream no longer knows its key")
            return move(summary, by: late)
        case .pending:
            depart(summary)
            return .send(id: summary.id, sequence: summary.sequence)
        case .uncertain:
            guard let settled = lanes.contexts[summary.upstream].flatMap({ OperationMachine.settle(summary, context: $0, now: now) }) else {
                depart(summary)
                return .look(id: summary.id, sequence: summary.sequence)
            }
            return move(summary, by: settled)
        case .inflight, .parked, .conflicted, .dead, .delivered, .cancelled, .superseded:
            // In flight without a sender: its outcome could not be recorded, and the write may have been applied.
            let lost = Disposition(state: .uncertain, reason: .lostAnswer, nextAttemptAt: now, countsAsAnswered: false)
            return move(summary, by: lost)
        }
    }

    private mutating func depart(_ summary: OperationSummary) {
        lanes.depart(summary)
        beginAction(of: summary)
        lanes.entries[summary.sequence]?.credentials = waits.shown(by: summary.principal)
        gates[summary.upstream]?.left(summary.shortID)
    }

    private mutating func beginAction(of summary: OperationSummary) {
        lanes.entries[summary.sequence]?.isBusy = true
        numbers[summary.shortID] = summary.sequence
    }

    private mutating func move(_ summary: OperationSummary, by disposition: Disposition) -> Action {
        beginAction(of: summary)
        return .move(id: summary.id, sequence: summary.sequence, disposition)
    }

    /// Returns further ready operations of the same collection and principal, to be sent with `leader` in one request, and marks them as
    /// busy. A batch takes one place at the gate, regardless of its size; until a write has taken effect it is small.
    package mutating func companions(of leader: OperationSummary, limit: Int, now: Timestamp) -> [OperationSummary] {
        guard leader.collection != nil else { return [] }
        let sequence = leader.sequence
        let limit = gates[leader.upstream]?.hasEffect == true ? limit : min(limit, RouteWatch.threshold - 1)
        var (taken, passed): ([OperationSummary], [Ticket]) = ([], [])
        var sent: Set = [sequence]
        var behind = lanes.dependants(of: [sequence]).sorted(by: >)
        while taken.count < limit {
            // Those that wait for the order alone go in the same request, in that order.
            let ticket = behind.isEmpty ? gates[leader.upstream]?.ready.popMin() : nil
            guard let next = behind.popLast() ?? ticket?.sequence else { break }
            guard let summary = lanes.entries[next]?.summary, lanes.isReady(next, behind: sent, now: now),
                summary.state == .pending, gates[leader.upstream]?.pauses(summary) == false,
                summary.collection == leader.collection, summary.principal == leader.principal
            else {
                if let ticket { passed.append(ticket) }
                continue
            }
            lanes.entries[next]?.isQueued = false
            beginAction(of: summary)
            lanes.entries[next]?.credentials = waits.shown(by: summary.principal)
            lanes.depart(summary)
            taken.append(summary)
            sent.insert(next)
            behind += lanes.dependants(of: [next]).sorted(by: >)
        }
        for ticket in passed { gates[leader.upstream]?.ready.insert(ticket) }
        return taken
    }

    // MARK: - Tickets

    /// Schedules a re-evaluation of the operation at `moment`, or earlier.
    mutating func wake(_ sequence: Int64, at moment: Timestamp) {
        guard let entry = lanes.entries[sequence], entry.wakesAt.map({ moment < $0 }) ?? true else { return }
        lanes.entries[sequence]?.wakesAt = moment
        due.insert(Ticket(key: moment.milliseconds, sequence: sequence))
    }

    /// Issues tickets for the operations that are next in a lane: for their due time, or for their upstream's gate.
    mutating func consider(_ place: LaneClient, now: Timestamp) {
        for sequence in lanes.next(in: place, now: now) { admit(sequence, now: now) }
    }

    mutating func admit(_ sequence: Int64, now: Timestamp) {
        guard let entry = lanes.entries[sequence], !entry.isBusy, !entry.isQueued, lanes.wants(entry.summary, now: now) else { return }
        let moment = lanes.turnComes(for: entry, now: now)
        guard moment <= now else { return wake(sequence, at: moment) }
        lanes.entries[sequence]?.isQueued = true
        gates[entry.summary.upstream, default: UpstreamThrottle()].ready.insert(
            Ticket(key: ReplayOrder.rank(entry.summary), sequence: sequence))
    }
}
