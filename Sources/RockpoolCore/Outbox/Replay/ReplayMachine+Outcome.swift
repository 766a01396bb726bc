// The processing of attempts and probes: the table decides, and the upstream's gate is updated (docs/outbox.md#answers,
// docs/outbox.md#lane-holds).
import HTTPTypes
import HeapModule

extension ReplayMachine {
    mutating func attempted(
        _ operation: QueuedWrite, _ outcome: AttemptOutcome, _ body: [UInt8], _ mapping: ServerMapping?, now: Timestamp, random: Double
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
        // Probe first: a conflict may be caused by our own write with a lost answer, and a create without a mapping needs its server id.
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

    /// Returns the action that commits a disposition as the outcome of an attempt. Its lane waits where an earlier attempt may still run.
    mutating func record(_ operation: QueuedWrite, _ disposition: Disposition, now: Timestamp) -> Action {
        returned(operation.sequence)
        entries[operation.sequence]?.judgement = nil
        if let moment = disposition.holdsLaneUntil {
            hold(LaneID(OperationSummary(operation)), of: operation.principal, until: moment, now: now)
        }
        return .record(id: operation.id, sequence: operation.sequence, disposition)
    }

    mutating func looked(_ operation: QueuedWrite, _ effect: ObservedEffect, now: Timestamp) -> [Action] {
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

    /// The store failed: retry after one second, to avoid a busy loop.
    mutating func failed(_ sequence: Int64, now: Timestamp) {
        returned(sequence)
        entries[sequence]?.isBusy = false
        entries[sequence]?.notBefore = now + .seconds(1)
        wake(sequence, at: now + .seconds(1))
    }
}

extension Disposition {
    /// True if a create was delivered and its answer contained no server id.
    fileprivate func isUnmapped(_ operation: QueuedWrite) -> Bool { state == .delivered && operation.localID != nil && mapping == nil }
}
