// The outbox's state machine: which transitions there are, and where an operation goes after an attempt (outbox.md §1.3, §2.4).

/// Every decision about an operation's state. Pure: moments and randomness are given.
package enum OperationMachine {
    /// The legal transitions, written once; the store enforces the same table (P12). States that have ended lead nowhere.
    package static let legal: [OperationState: Set<OperationState>] = [
        .pending: [.inflight, .uncertain, .conflicted, .parked, .dead, .cancelled, .superseded],
        .inflight: [.pending, .uncertain, .delivered, .conflicted, .parked, .dead],
        .uncertain: [.pending, .delivered, .conflicted, .cancelled],
        .conflicted: [.pending, .delivered, .dead, .cancelled, .superseded],
        .parked: [.pending, .dead, .cancelled, .superseded],
        .dead: [.pending, .cancelled, .superseded],
        .delivered: [], .cancelled: [], .superseded: [],
    ]

    /// Whether an operation may go from one state to another.
    package static func permits(from: OperationState, to: OperationState) -> Bool {
        legal[from, default: []].contains(to)
    }

    /// Where an operation goes after an attempt. `body` is the beginning of the answer's body, read only to tell an idempotency layer's
    /// 409 and 422 from the application's. `random` is uniform in 0..<1.
    package static func disposition(
        of operation: Operation, after outcome: AttemptOutcome, body: [UInt8] = [], context: ReplayContext, now: Timestamp, random: Double
    ) -> Disposition {
        let attempt = Attempt(operation: operation, context: context, now: now, random: random)
        switch outcome {
        case .answered(let head):
            return attempt.delivered(
                attempt.limited(attempt.disposition(of: Answer(head: head, bodyStart: body, request: operation.request))))
        case .failed(let failure):
            return attempt.limited(attempt.disposition(of: failure))
        }
    }

    /// What happens to a pending or parked operation whose client gave it a time that has passed; nil when it has not. One whose
    /// earlier attempt may have taken effect still says `expired`: its attempts tell the rest.
    package static func expiry(of operation: OperationSummary, now: Timestamp) -> Disposition? {
        guard operation.state == .pending || operation.state == .parked, let expiresAt = operation.expiresAt, expiresAt <= now else {
            return nil
        }
        return .expired
    }

    /// What becomes of an operation whose effect is unknown: at once `pending` when sending again is harmless, else, once it has been
    /// looked for often enough, by policy. Nil while it stays uncertain.
    package static func settle(_ operation: OperationSummary, context: ReplayContext, now: Timestamp) -> Disposition? {
        guard operation.state == .uncertain else { return nil }
        if isHarmless(operation, context: context, now: now) {
            return Disposition(
                state: .pending, reason: .lostAnswer, nextAttemptAt: now, countsAsAnswered: false, detail: "sending it again is harmless")
        }
        guard operation.probes >= ReplayContext.probes else { return nil }
        switch context.uncertainPolicy {
        case .ask: return nil
        case .retry:
            return Disposition(state: .pending, nextAttemptAt: now, countsAsAnswered: false, detail: "by policy `uncertain: retry`")
        case .drop:
            return Disposition(state: .cancelled, reason: .cancelled, countsAsAnswered: false, detail: "by policy `uncertain: drop`")
        }
    }

    /// Whether an uncertain operation may be sent again without a look; not when its key itself was refused.
    /// Whether it waits for a person or a credential, as far as time and its upstream's settings do not help it.
    package static func isStuck(_ operation: OperationSummary, context: ReplayContext?, now: Timestamp) -> Bool {
        guard operation.state == .uncertain else { return operation.state.isStuck }
        guard operation.probes >= ReplayContext.probes else { return false }
        return context.map { !isHarmless(operation, context: $0, now: now) && $0.uncertainPolicy == .ask } ?? true
    }

    static func isHarmless(_ operation: OperationSummary, context: ReplayContext, now: Timestamp) -> Bool {
        operation.state == .uncertain && operation.reason != .rejected
            && context.permitsResend(method: operation.method, firstSentAt: operation.firstSentAt, now: now)
    }

    /// Where an uncertain operation goes after a look at its upstream.
    package static func disposition(of operation: Operation, seen effect: Effect, context: ReplayContext, now: Timestamp) -> Disposition {
        switch effect {
        case .present(let mapping):
            // Sent once, its one attempt is seen to have ended; sent again by a person or its policy, another may still run.
            Disposition(
                state: .delivered, reason: .probed, countsAsAnswered: false,
                holdsLaneUntil: operation.lostAt == operation.firstSentAt
                    ? nil : context.holdsLane(after: operation, isDelivered: true, now: now),
                mapping: mapping, countsAsProbe: true, detail: "its effect is there")
        case .absent:
            Disposition(
                state: .pending, nextAttemptAt: now, countsAsAnswered: false, countsAsProbe: true,
                detail: "its effect is not there, and cannot come any more")
        case .unknown:
            Disposition(
                state: .uncertain, reason: .lostAnswer, nextAttemptAt: context.nextProbe(after: operation.probes + 1, now: now),
                countsAsAnswered: false, countsAsProbe: true)
        }
    }
}

extension Disposition {
    /// The client's own time limit has passed.
    static let expired = Disposition(
        state: .dead, reason: .expired, countsAsAnswered: false, detail: "the time its client gave it has passed")
}
