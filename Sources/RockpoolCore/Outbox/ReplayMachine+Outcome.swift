// What comes of an attempt or a look: the table decides, the upstream's gate learns (outbox.md §1.3, §2.4).
import HTTPTypes
import HeapModule

extension ReplayMachine {
    mutating func attempted(
        _ operation: Operation, _ outcome: AttemptOutcome, _ body: [UInt8], _ mapping: ServerMapping?, now: Timestamp, random: Double
    ) -> [Action] {
        guard let context = contexts[operation.upstream] else {
            let lost = Disposition(state: .uncertain, reason: .lostAnswer, nextAttemptAt: now, countsAsAnswered: false)
            return [record(operation, lost, now: now)]
        }
        var disposition = OperationMachine.disposition(
            of: operation, after: outcome, body: body, context: context, now: now, random: random)
        if disposition.state == .delivered { disposition.mapping = mapping }
        if outcome.mayStillRun {
            entries[operation.sequence]?.isDoubtful = true
            if !operation.isConditional { entries[operation.sequence]?.mayRunUntil = now + context.idempotency.maxProcessing }
        }
        learn(from: outcome, disposition, operation.upstream)
        // Before it is called a conflict: is it our own write, whose answer was lost, that stands there? And what did a create become?
        if disposition.state == .conflicted && operation.lostAt != nil || disposition.isUnmapped(operation) {
            entries[operation.sequence]?.judgement = disposition
            return [.look(id: operation.id, sequence: operation.sequence)]
        }
        return [record(operation, disposition, now: now)]
    }

    private mutating func learn(from outcome: AttemptOutcome, _ disposition: Disposition, _ upstream: String) {
        switch outcome {
        case .answered where !disposition.isCaptive: gates[upstream]?.answered()
        case .answered, .failed: gates[upstream]?.failed()
        }
        if let moment = disposition.pauseUpstreamUntil { gates[upstream]?.pause(until: moment) }
    }

    /// Asks for a disposition to be committed as the outcome of an attempt. Its lane waits where that attempt may have left another
    /// running.
    mutating func record(_ operation: Operation, _ disposition: Disposition, now: Timestamp) -> Action {
        returned(operation.sequence)
        entries[operation.sequence]?.judgement = nil
        if let moment = disposition.holdsLaneUntil {
            hold(LaneID(OperationSummary(operation)), of: operation.principal, until: moment, now: now)
        }
        return .record(id: operation.id, sequence: operation.sequence, disposition)
    }

    mutating func looked(_ operation: Operation, _ effect: Effect, now: Timestamp) -> [Action] {
        if let judgement = entries[operation.sequence]?.judgement {
            guard case .present(let mapping) = effect else { return [record(operation, judgement, now: now)] }
            var delivered = judgement
            if judgement.state != .delivered {
                delivered = Disposition(state: .delivered, reason: .probed, detail: "our own write stands there")
            }
            delivered.mapping = mapping
            return [record(operation, delivered, now: now)]
        }
        returned(operation.sequence)
        let context = contexts[operation.upstream] ?? ReplayContext(idempotency: IdempotencySettings())
        let disposition = OperationMachine.disposition(of: operation, seen: effect, context: context, now: now)
        if let moment = disposition.holdsLaneUntil {
            hold(LaneID(OperationSummary(operation)), of: operation.principal, until: moment, now: now)
        }
        return [.move(id: operation.id, sequence: operation.sequence, disposition)]
    }

    /// The store failed: another try in a second, not at once and not for ever.
    mutating func failed(_ sequence: Int64, now: Timestamp) {
        returned(sequence)
        entries[sequence]?.isBusy = false
        entries[sequence]?.notBefore = now + .seconds(1)
        wake(sequence, at: now + .seconds(1))
    }
}

extension Disposition {
    /// A create has taken effect, and its answer did not say what it became.
    fileprivate func isUnmapped(_ operation: Operation) -> Bool { state == .delivered && operation.localID != nil && mapping == nil }
}
