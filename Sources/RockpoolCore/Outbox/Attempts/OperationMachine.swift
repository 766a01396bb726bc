// The outbox's state machine: the legal transitions, and the state of an operation after an attempt (docs/outbox.md#states,
// docs/outbox.md#resend-rule).

/// All decisions about an operation's state. Pure functions: times and randomness are parameters.
package enum OperationMachine {
    /// The legal transitions, defined once; the store enforces the same table (P12). States that have ended have no transitions.
    package static let legal: [OperationState: Set<OperationState>] = [
        .pending: [.inflight, .uncertain, .conflicted, .parked, .dead, .cancelled, .superseded],
        .inflight: [.pending, .uncertain, .delivered, .conflicted, .parked, .dead],
        .uncertain: [.pending, .delivered, .conflicted, .cancelled],
        .conflicted: [.pending, .delivered, .dead, .cancelled, .superseded],
        .parked: [.pending, .dead, .cancelled, .superseded],
        .dead: [.pending, .cancelled, .superseded],
        .delivered: [], .cancelled: [], .superseded: [],
    ]

    /// True if an operation may change from one state to another.
    package static func permits(from: OperationState, to: OperationState) -> Bool {
        legal[from, default: []].contains(to)
    }

    /// Returns the disposition after an attempt. `body` is the beginning of the answer's body, read only to distinguish an idempotency
    /// layer's 409 and 422 from the application's. `random` is uniform in 0..<1.
    package static func disposition(
        of operation: QueuedWrite, after outcome: AttemptOutcome, body: [UInt8] = [], context: ReplayContext, now: Timestamp, random: Double
    ) -> Disposition {
        let attempt = Attempt(operation: operation, context: context, now: now, random: random)
        switch outcome {
        case .answered(let head):
            return attempt.delivered(
                attempt.limited(attempt.disposition(of: AttemptResponse(head: head, bodyStart: body, request: operation.request))))
        case .failed(let failure):
            return attempt.limited(attempt.disposition(of: failure))
        }
    }

    /// Returns the disposition of a pending or parked operation past its client's expiry time; nil before. An operation with an earlier
    /// attempt that may have taken effect is also `expired`: its list of attempts shows the rest.
    package static func expiry(of operation: OperationSummary, now: Timestamp) -> Disposition? {
        guard operation.state == .pending || operation.state == .parked || operation.isTelemetry && operation.state != .inflight,
            let expiresAt = operation.expiresAt, expiresAt <= now
        else {
            return nil
        }
        if operation.isTelemetry { return .outlived }
        return operation.expiresBySignature ? .signatureExpired : .expired
    }

    /// Returns the disposition of an operation with an unknown effect: `pending` at once when a resend is safe, otherwise by policy after
    /// enough probes. Nil while it stays uncertain.
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

    /// True if it waits for a person or a credential, and neither time nor its upstream's settings will release it.
    package static func isStuck(_ operation: OperationSummary, context: ReplayContext?, now: Timestamp) -> Bool {
        guard operation.state == .uncertain else { return operation.state.isStuck }
        guard operation.probes >= ReplayContext.probes else { return false }
        return context.map { !isHarmless(operation, context: $0, now: now) && $0.uncertainPolicy == .ask } ?? true
    }

    /// True if an uncertain operation may be sent again without a probe; false when its key itself was refused, and when it was redirected,
    /// because the answer would be the same.
    static func isHarmless(_ operation: OperationSummary, context: ReplayContext, now: Timestamp) -> Bool {
        operation.state == .uncertain && operation.reason != .rejected && operation.reason != .redirected
            && (operation.isTelemetry || context.permitsResend(method: operation.method, firstSentAt: operation.firstSentAt, now: now))
    }

    /// Returns the disposition of an uncertain operation after a probe.
    package static func disposition(
        of operation: QueuedWrite, seen effect: ObservedEffect, context: ReplayContext, now: Timestamp
    ) -> Disposition {
        switch effect {
        case .present(let mapping):
            // After one attempt, the probe shows that this attempt has ended; after a resend by a person or its policy, another may still
            // run.
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
                state: .uncertain, reason: operation.reason ?? .lostAnswer,
                nextAttemptAt: context.nextProbe(after: operation.probes + 1, now: now), countsAsAnswered: false, countsAsProbe: true)
        }
    }
}

extension Disposition {
    /// The upstream would refuse the signature: the request must be made again.
    static let signatureExpired = Disposition(
        state: .dead, reason: .signatureExpired, countsAsAnswered: false, detail: "the time for which its signature is accepted has passed")
    /// Telemetry that has waited as long as its route keeps it: the row is removed, and counted.
    static let outlived = Disposition(
        state: .cancelled, reason: .expired, countsAsAnswered: false, detail: "its route keeps it no longer")
    /// The client's own expiry time has passed.
    static let expired = Disposition(
        state: .dead, reason: .expired, countsAsAnswered: false, detail: "the time its client gave it has passed")
}
