// The effects of events: outcomes of attempts and probes, and changed operations (docs/outbox.md#answers, docs/outbox.md#lane-holds).
import HTTPTypes
import HeapModule

extension ReplayMachine {
    /// The largest backward step that does not count as a set-back clock.
    private static let tolerance = TimeSpan.seconds(2)

    /// - Parameter random: uniform in 0..<1.
    package mutating func step(_ event: Event, now: Timestamp, random: Double) -> [Action] {
        observe(now)
        var actions: [Action] = []
        switch event {
        case .changed(let summary):
            if mayBeLate(summary) { missed.insert(summary.shortID) } else { put(summary, now: now) }
        case .reread(let summary):
            if entry(of: summary)?.isBusy == true { missed.insert(summary.shortID) } else { put(summary, now: now) }
        case .settled(let summary): put(summary, now: now)
        case .attempted(let operation, let outcome, let body, let mapping, let reading):
            actions += attempted(
                operation, outcome: outcome, body: body, mapping: mapping, reading: reading, now: now, random: random)
        case .unsendable(let operation, let disposition): actions += [judged(operation, as: disposition, now: now)]
        case .looked(let operation, let effect): actions += looked(operation, effect: effect, now: now)
        case .failed(let id): failed(UUIDText(id), now: now)
        case .refused(let id): refused(UUIDText(id), now: now)
        case .reachability(let upstream, let isReachable):
            gates[upstream, default: UpstreamThrottle()].turned(isReachable: isReachable, now: now)
        case .held(let upstream, let lane, let principal, let moment):
            lanes.hold(LaneID(upstream: upstream, lane: lane), of: principal, until: moment, now: now)
        case .proved(let principal): prove(principal, now: now)
        case .credential(let principal):
            for sequence in waits.show(by: principal) { wake(sequence, at: now) }
        case .paused(let upstream, let moment): gates[upstream, default: UpstreamThrottle()].pause(until: moment)
        case .throttled(let id, let moment):
            if let summary = summary(ofBusy: id) { told(summary, until: moment, now: now) }
        case .resumed(let upstream): resume(upstream)
        case .answered(let upstream, let route, let client, let sign, let id):
            gates[upstream]?.note(sign, of: id.map { UUIDText($0) }, client: client, route: route, now: now)
        case .overruled(let upstream): gates[upstream]?.endRoutePauses()
        case .urged(let operation):
            if let summary = entry(of: operation)?.summary { gates[summary.upstream]?.urge(summary.sequence, of: summary.watchedRoute) }
        case .tick: break
        }
        return actions + dispatch(now: now)
    }

    /// Records the time of a step. When the wall clock was set back, all waits keep their remaining duration instead of lasting until the
    /// clock catches up (docs/storage.md#clock).
    private mutating func observe(_ now: Timestamp) {
        let behind = lastStep.map { $0 - now } ?? .zero
        lastStep = now
        guard behind > Self.tolerance else { return }
        lanes.setBack(by: behind)
        for upstream in Array(gates.keys) { gates[upstream]?.setBack(by: behind) }
        for (sequence, _) in lanes.entries.all { wake(sequence, at: now) }
    }

    private mutating func attempted(
        _ operation: QueuedWrite, outcome: AttemptOutcome, body: [UInt8], mapping: ServerMapping?, reading: AnswerReading,
        now: Timestamp, random: Double
    ) -> [Action] {
        guard var context = lanes.contexts[operation.upstream] else {
            let lost = Disposition(state: .uncertain, reason: .lostAnswer, nextAttemptAt: now, countsAsAnswered: false)
            return [record(operation, as: lost, now: now)]
        }
        let sequence = number(of: operation)
        context.reading = reading
        context.reading.hasEffect = gates[operation.upstream]?.hasEffect ?? true
        if case .answered(let head) = outcome, [302, 303].contains(head.status), let location = head.fields[.location] {
            let redirect = WriteRedirect(location, from: operation.request)
            context.reading.isCommonPlace =
                redirect.place == .elsewhere && gates[operation.upstream]?.commonPlaces.note(redirect) == true
        }
        var disposition = OperationMachine.disposition(
            of: operation, after: outcome, body: body, context: context, now: now, random: random)
        if disposition.state == .delivered { disposition.mapping = mapping }
        if outcome.mayStillRun {
            lanes.entries[sequence]?.isDoubtful = true
            if !operation.isConditional { lanes.entries[sequence]?.mayRunUntil = now + context.idempotency.maxProcessing }
        }
        gates[operation.upstream]?.learn(from: disposition)
        let summary = lanes.entries[sequence]?.summary ?? OperationSummary(operation)
        if let moment = disposition.pauseUpstreamUntil { told(summary, until: moment, now: now) }
        let sign = RouteSign(outcome, body: body, disposition: disposition)
        gates[operation.upstream]?.note(sign, of: summary.shortID, client: summary.client, route: summary.watchedRoute, now: now)
        return [judged(operation, as: disposition, now: now)]
    }

    /// Pauses a client as its upstream demands, and the upstream if another client was told the same.
    private mutating func told(_ summary: OperationSummary, until moment: Timestamp, now: Timestamp) {
        let all = lanes.pauses[summary.upstream, default: ClientPauses()].tell(
            summary.client, isProved: lanes.isProved(summary.principal), until: moment, now: now)
        if let all { gates[summary.upstream]?.pause(until: all) }
    }

    /// Ends the pauses that an upstream has demanded.
    private mutating func resume(_ upstream: String) {
        gates[upstream]?.resume()
        guard lanes.pauses.removeValue(forKey: upstream) != nil else { return }
        for (sequence, entry) in lanes.entries.all where entry.summary.upstream == upstream { wake(sequence, at: .distantPast) }
    }

    /// Returns the action that follows from a disposition. Probes first: a conflict may be caused by our own write with a lost answer, and a
    /// create without a mapping needs its server id.
    private mutating func judged(_ operation: QueuedWrite, as disposition: Disposition, now: Timestamp) -> Action {
        guard disposition.state == .conflicted && operation.lostAt != nil || disposition.isUnmapped(operation) else {
            return record(operation, as: disposition, now: now)
        }
        lanes.entries[number(of: operation)]?.judgement = Boxed(disposition)
        return .look(id: operation.id, sequence: operation.sequence)
    }

    /// Returns the action that commits a disposition as the outcome of an attempt. Its lane waits where an earlier attempt may still run.
    private mutating func record(_ operation: QueuedWrite, as disposition: Disposition, now: Timestamp) -> Action {
        gates[operation.upstream]?.came(UUIDText(operation.id))
        lanes.entries[number(of: operation)]?.judgement = nil
        if let moment = disposition.holdsLaneUntil {
            lanes.hold(LaneID(upstream: operation.upstream, lane: operation.lane), of: operation.principal, until: moment, now: now)
        }
        return .record(id: operation.id, sequence: operation.sequence, disposition)
    }

    private mutating func looked(_ operation: QueuedWrite, effect: ObservedEffect, now: Timestamp) -> [Action] {
        if let judgement = lanes.entries[number(of: operation)]?.judgement?.value {
            guard case .present(let mapping) = effect else { return [record(operation, as: judgement, now: now)] }
            var delivered = judgement
            if judgement.state != .delivered {
                delivered = Disposition(state: .delivered, reason: .probed, detail: "our own write stands there")
            }
            delivered.mapping = mapping
            return [record(operation, as: delivered, now: now)]
        }
        gates[operation.upstream]?.came(UUIDText(operation.id))
        let context = lanes.contexts[operation.upstream] ?? ReplayContext(idempotency: IdempotencySettings())
        let disposition = OperationMachine.disposition(of: operation, seen: effect, context: context, now: now)
        if let moment = disposition.holdsLaneUntil {
            lanes.hold(LaneID(upstream: operation.upstream, lane: operation.lane), of: operation.principal, until: moment, now: now)
        }
        return [.move(id: operation.id, sequence: operation.sequence, disposition)]
    }

    /// The store failed: retry after one second, to avoid a busy loop.
    private mutating func failed(_ id: UUIDText, after span: TimeSpan = .seconds(1), now: Timestamp) {
        for upstream in Array(gates.keys) { gates[upstream]?.came(id) }
        guard let sequence = number(of: id), let summary = lanes.entries[sequence]?.summary else { return }
        gates[summary.upstream]?.unsent(summary, now: now)
        lanes.entries[sequence]?.isBusy = false
        lanes.entries[sequence]?.notBefore = now + span
        wake(sequence, at: now + span)
    }

    /// The store refused this operation alone: retry at growing intervals of up to a minute.
    private mutating func refused(_ id: UUIDText, now: Timestamp) {
        let sequence = number(of: id)
        let refusals = sequence.flatMap { lanes.entries[$0]?.refusals } ?? 0
        if let sequence { lanes.entries[sequence]?.refusals = refusals + 1 }
        failed(id, after: .seconds(min(60, 1 << min(refusals, 6))), now: now)
    }

    // MARK: - Changed operations

    /// Stores the current state of an operation; one that has ended is removed, which releases those behind it.
    private mutating func put(_ summary: OperationSummary, now: Timestamp) {
        var summary = summary
        summary.share(&lanes.texts)
        // Recorded while the clock was ahead: before it was set back, or in another process (docs/storage.md#clock).
        if summary.nextAttemptAt > now + lanes.longestWait(of: summary.upstream) { summary.nextAttemptAt = now }
        gates[summary.upstream]?.came(summary.shortID)
        let isMoved = renumber(summary, now: now)
        let before = lanes.entries[summary.sequence]
        count(before?.summary, by: -1)
        guard !summary.state.hasEnded else { return leave(summary, after: before, now: now) }
        numbers[summary.shortID] = changesNumbers ? summary.sequence : nil
        var entry = Entry(summary: summary)
        entry.remember(before, context: lanes.contexts[summary.upstream], now: now)
        lanes.entries[summary.sequence] = entry
        count(summary, by: 1)
        lanes.enter(summary, after: before?.summary, now: now)
        waits.note(summary)
        if let before, LaneClient(before.summary) != LaneClient(summary) { offer(LaneClient(before.summary), now: now) }
        if let expiresAt = summary.expiresAt { wake(summary.sequence, at: expiresAt) }
        if waits.isAwake(entry, now: now) {
            wake(summary.sequence, at: now)
        } else if waits.isParked(summary), summary.principal == nil {
            wake(summary.sequence, at: summary.nextAttemptAt)
        }
        let isChanged = before.map { lanes.standing(of: $0.summary, now: now) != lanes.standing(of: summary, now: now) } ?? false
        let needsOthers = before.map { $0.summary.needs != summary.needs } ?? false
        offer(LaneClient(summary), isChanged: isChanged || needsOthers || isMoved, now: now)
        if summary.state != .pending { admit(summary.sequence, now: now) }
        if isChanged || before == nil && lanes.isStuck(summary, now: now) {
            reconsider(lanes.dependants(beside: summary), now: now)
        }
    }

    /// Re-evaluates operations because one that they need has changed, and those that need them in turn.
    private mutating func reconsider(_ sequences: Set<Int64>, now: Timestamp) {
        var waiting = sequences
        while true {
            for place in Set(waiting.compactMap { lanes.entries[$0]?.summary }.map(LaneClient.init)) {
                lanes.offer(place, isChanged: true, now: now)
                consider(place, now: now)
            }
            guard !lanes.restated.isEmpty else { return }
            waiting = lanes.dependants(of: lanes.restated)
            lanes.restated = []
        }
    }

    private mutating func leave(_ summary: OperationSummary, after before: Entry?, now: Timestamp) {
        numbers[summary.shortID] = nil
        missed.remove(summary.shortID)
        lanes.remove(summary.sequence, needs: before?.summary.needs ?? [])
        waits.note(summary)
        if let before {
            // Given up by a person or its policy: its sent attempt may still run.
            if summary.state != .delivered, before.summary.entity != nil, let moment = before.mayRunUntil {
                lanes.hold(before.summary.lane, of: before.summary.principal, until: moment, now: now)
            }
            offer(LaneClient(before.summary), isChanged: before.isAside, now: now)
            if lanes.isStuck(before.summary, now: now) { reconsider(lanes.dependants(beside: before.summary), now: now) }
        }
        reconsider(lanes.takeDependants(of: summary.sequence), now: now)
    }

    /// Records that the principal is proved: from now on no unproved principal blocks it.
    private mutating func prove(_ principal: String, now: Timestamp) {
        for place in lanes.prove(principal) { offer(place, now: now) }
    }

    /// Re-evaluates a client's operations in a lane after one of them has changed, and those that need them.
    mutating func offer(_ place: LaneClient, isChanged: Bool = true, now: Timestamp) {
        lanes.offer(place, isChanged: isChanged, now: now)
        consider(place, now: now)
        reconsider([], now: now)
    }

    mutating func count(_ summary: OperationSummary?, by change: Int) {
        guard let summary, summary.state == .pending || summary.state == .uncertain || summary.state == .inflight else { return }
        gates[summary.upstream, default: UpstreamThrottle()].waiting += change
    }
}

extension Disposition {
    /// True if a create was delivered and its answer contained no server id.
    fileprivate func isUnmapped(_ operation: QueuedWrite) -> Bool { state == .delivered && operation.localID != nil && mapping == nil }
}
