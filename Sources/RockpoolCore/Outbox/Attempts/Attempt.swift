// The evaluation of one attempt: dispositions that depend on the operation, its upstream's settings, the time and randomness.
import HTTPTypes

struct Attempt {
    let operation: QueuedWrite
    let context: ReplayContext
    let now: Timestamp
    let random: Double

    /// Returns the disposition without an answer (docs/outbox.md#resend-rule): a retry when nothing was sent, otherwise a retry only if a
    /// resend is
    /// safe.
    func disposition(of failure: TransferFailure) -> Disposition {
        let detail = failure.detail.isEmpty ? failure.proxyErrorName : "\(failure.proxyErrorName): \(failure.detail)"
        // The upstream has not received the whole body, so it has nothing to apply.
        if failure.kind == .damaged { return Disposition(state: .dead, reason: .damaged, countsAsAnswered: false, detail: failure.detail) }
        if failure.kind == .protocolError, failure.detail == ResponseGate.proxyChallenge { return parkedByProxy(detail: detail) }
        guard failure.sent != .no else {
            let wait = Backoff.fullJitter(attempt: operation.networkAttempts, cap: Backoff.unsentCap, random: random)
            return Disposition(state: .pending, nextAttemptAt: now + wait, countsAsAnswered: false, detail: detail)
        }
        guard context.permitsResend(of: operation, now: now) else { return uncertain(countsAsAnswered: false, detail: detail) }
        let wait = Backoff.fullJitter(attempt: operation.networkAttempts, cap: Backoff.lostCap, random: random)
        // A malformed answer counts as an answer: unlimited retries would not fix it.
        let isAnswer = failure.kind == .protocolError
        return Disposition(state: .pending, reason: .lostAnswer, nextAttemptAt: now + wait, countsAsAnswered: isAnswer, detail: detail)
    }

    /// Ends an operation that would otherwise be retried for ever: past the limit of answered attempts, or past its client's expiry time. The
    /// route of telemetry bounds its time.
    func limited(_ disposition: Disposition) -> Disposition {
        let isTriedAgain =
            switch disposition.state {
            case .pending: true
            case .uncertain: context.uncertainPolicy == .retry
            case .parked: disposition.nextAttemptAt != nil
            default: false
            }
        guard isTriedAgain else { return disposition }
        if disposition.countsAsAnswered, !operation.isTelemetry, operation.answeredAttempts + 1 > context.answeredLimit {
            return dead(.exhausted, detail: "gave up after \(operation.answeredAttempts + 1) answers: \(disposition.detail ?? "")")
        }
        guard disposition.state == .pending else { return disposition }
        if let expiresAt = operation.expiresAt, expiresAt <= now { return operation.expiresBySignature ? .signatureExpired : .expired }
        // Regardless of this attempt's outcome, that of an earlier one is still unknown.
        var doubtful = disposition
        if operation.lostAt != nil { doubtful.reason = .lostAnswer }
        return doubtful
    }

    /// Delivered, although an earlier attempt may still run: if neither a key nor a condition prevents it from undoing the next write, hold
    /// the lane.
    func delivered(_ disposition: Disposition) -> Disposition {
        guard disposition.state == .delivered else { return disposition }
        var held = disposition
        held.holdsLaneUntil = context.holdsLane(after: operation, isDelivered: true, now: now)
        return held
    }

    /// The upstream failed while processing the request: retry when that is safe, otherwise its effect is unknown.
    func failedUpstream(detail: String) -> Disposition {
        context.permitsResend(of: operation, now: now) ? retried(detail: detail) : uncertain(countsAsAnswered: true, detail: detail)
    }

    /// Returns `pending` with full jitter; `floor` is for answers that will not change soon.
    func retried(detail: String, floor: TimeSpan = .zero) -> Disposition {
        let wait = Backoff.fullJitter(attempt: operation.answeredAttempts, random: random)
        return Disposition(state: .pending, nextAttemptAt: now + floor + wait, detail: detail)
    }

    /// Returns `parked` with an automatic retry; meanwhile it blocks only operations of its own principal.
    func parkedForAWhile(detail: String) -> Disposition {
        let wait = Backoff.fullJitter(attempt: operation.answeredAttempts, random: random)
        return Disposition(state: .parked, reason: .auth, nextAttemptAt: now + .seconds(10) + wait, detail: detail)
    }

    /// A proxy on the way demands its own credentials: the write has not reached the upstream, and its own credential is not refused.
    func parkedByProxy(detail: String) -> Disposition {
        var parked = parkedForAWhile(detail: detail)
        parked.countsAsAnswered = false
        return parked
    }

    /// The upstream answered that it processed nothing and names, or implies, a later time. Such an answer does not count toward the limit,
    /// as if it had not reached the upstream: a maintenance window must not use up a queue's attempts.
    func throttled(_ answer: AttemptResponse, pausesUpstream: Bool) -> Disposition {
        let attempts = operation.answeredAttempts + operation.networkAttempts
        let moment = Backoff.throttled(
            until: RetryAfter.parse(answer.head.fields, now: now), attempt: min(attempts, 8), now: now, random: random)
        return Disposition(
            state: .pending, nextAttemptAt: moment, countsAsAnswered: false, pauseUpstreamUntil: pausesUpstream ? moment : nil,
            detail: answer.statusText)
    }

    /// Something else answered in the upstream's place: treated as if the upstream had not been reached.
    func captive(detail: String) -> Disposition {
        let wait = Backoff.fullJitter(attempt: operation.networkAttempts, cap: Backoff.unsentCap, random: random)
        return Disposition(state: .pending, nextAttemptAt: now + wait, countsAsAnswered: false, isCaptive: true, detail: detail)
    }

    /// The request may have taken effect, and a resend could repeat it; the effect is probed until `max_processing`, then the policy
    /// applies.
    func uncertain(countsAsAnswered: Bool, reason: OperationReason = .lostAnswer, detail: String) -> Disposition {
        Disposition(
            state: .uncertain, reason: reason, nextAttemptAt: context.nextProbe(after: 0, now: now),
            countsAsAnswered: countsAsAnswered, detail: detail)
    }

    func dead(_ reason: OperationReason, detail: String) -> Disposition {
        Disposition(state: .dead, reason: reason, detail: detail)
    }
}
