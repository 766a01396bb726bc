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

/// The next state of an operation, and the other consequences of its last attempt (docs/outbox.md#answers).
package struct Disposition: Hashable, Sendable {
    /// The next state.
    package var state: OperationState
    /// The reason for the state.
    package var reason: OperationReason?
    /// The time of the next attempt for `pending`, of the retry for `parked`, and of the next probe for `uncertain`. Otherwise nil.
    package var nextAttemptAt: Timestamp?
    /// True if the attempt counts toward the limit; otherwise it counts as a network attempt.
    package var countsAsAnswered: Bool
    /// The end of a pause in which nothing is replayed to the upstream (429, 503).
    package var pauseUpstreamUntil: Timestamp?
    /// True if something else answered in the upstream's place: reachability becomes captive.
    package var isCaptive: Bool
    /// The end of a hold on its lane: an earlier attempt may still run, and must not undo the next write (docs/outbox.md#lane-holds).
    package var holdsLaneUntil: Timestamp?
    /// The server id and URL of a created entity.
    package var mapping: ServerMapping?
    /// True if it results from a probe of the upstream.
    package var countsAsProbe: Bool
    /// The description for `lastError` and the dashboard.
    package var detail: String?

    package init(
        state: OperationState, reason: OperationReason? = nil, nextAttemptAt: Timestamp? = nil, countsAsAnswered: Bool = true,
        pauseUpstreamUntil: Timestamp? = nil, isCaptive: Bool = false, holdsLaneUntil: Timestamp? = nil, mapping: ServerMapping? = nil,
        countsAsProbe: Bool = false, detail: String? = nil
    ) {
        self.state = state
        self.reason = reason
        self.nextAttemptAt = nextAttemptAt
        self.countsAsAnswered = countsAsAnswered
        self.pauseUpstreamUntil = pauseUpstreamUntil
        self.isCaptive = isCaptive
        self.holdsLaneUntil = holdsLaneUntil
        self.mapping = mapping
        self.countsAsProbe = countsAsProbe
        self.detail = detail
    }
}

/// The end of one attempt (docs/outbox.md#evidence; docs/architecture.md#rules).
package enum AttemptOutcome: Hashable, Sendable {
    /// A final response head arrived, even if its body was cut off: the status line alone determines the outcome.
    case answered(ResponseHead)
    /// No final head arrived.
    case failed(TransferFailure)

    /// True if the request may still take effect: the sent request got no answer, or only one from an intermediary that lost the origin
    /// (docs/outbox.md#evidence). `QueuedWrite.lostAt` is the time of the last such attempt.
    package var mayStillRun: Bool {
        switch self {
        case .failed(let failure): failure.sent != .no
        case .answered(let head): Self.mayStillRun(answered: head.status)
        }
    }

    /// The server errors that prove that the request had no effect.
    package static let effectlessErrors = [501, 503, 505, 511]

    /// True if a response with this status leaves open that the request takes effect.
    package static func mayStillRun(answered status: Int) -> Bool {
        (500...599).contains(status) && !effectlessErrors.contains(status)
    }
}
