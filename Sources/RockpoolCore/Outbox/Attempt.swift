// One attempt being judged: the dispositions that depend on the operation, its upstream's settings, the moment and chance.
import HTTPTypes

struct Attempt {
    let operation: Operation
    let context: ReplayContext
    let now: Timestamp
    let random: Double

    /// No answer came (outbox.md §2.4): harmless when nothing was sent, else it depends on whether a resend is.
    func disposition(of failure: TransferFailure) -> Disposition {
        let detail = failure.detail.isEmpty ? failure.proxyErrorName : "\(failure.proxyErrorName): \(failure.detail)"
        guard failure.sent != .no else {
            let wait = Backoff.fullJitter(attempt: operation.networkAttempts, cap: Backoff.unsentCap, random: random)
            return Disposition(state: .pending, nextAttemptAt: now + wait, countsAsAnswered: false, detail: detail)
        }
        guard context.permitsResend(of: operation, now: now) else { return uncertain(countsAsAnswered: false, detail) }
        let wait = Backoff.fullJitter(attempt: operation.networkAttempts, cap: Backoff.lostCap, random: random)
        // An answer that breaks HTTP is one all the same: sending again for ever would not mend it.
        let isAnswer = failure.kind == .protocolError
        return Disposition(state: .pending, reason: .lostAnswer, nextAttemptAt: now + wait, countsAsAnswered: isAnswer, detail: detail)
    }

    /// Ends what would be tried again for ever: past the limit of answered attempts, or past the time its client gave.
    func limited(_ disposition: Disposition) -> Disposition {
        let isTriedAgain =
            switch disposition.state {
            case .pending: true
            case .uncertain: context.uncertainPolicy == .retry
            case .parked: disposition.nextAttemptAt != nil
            default: false
            }
        guard isTriedAgain else { return disposition }
        if disposition.countsAsAnswered, operation.answeredAttempts + 1 > context.answeredLimit {
            return dead(.exhausted, "gave up after \(operation.answeredAttempts + 1) answers: \(disposition.detail ?? "")")
        }
        guard disposition.state == .pending else { return disposition }
        if let expiresAt = operation.expiresAt, expiresAt <= now { return .expired }
        // Whatever came of this attempt, that of an earlier one is still unknown.
        var doubtful = disposition
        if operation.lostAt != nil { doubtful.reason = .lostAnswer }
        return doubtful
    }

    /// Delivered, though an earlier attempt may still run: neither a key nor a condition keeps that from undoing what comes next.
    func delivered(_ disposition: Disposition) -> Disposition {
        guard disposition.state == .delivered else { return disposition }
        var held = disposition
        held.holdsLaneUntil = context.holdsLane(after: operation, isDelivered: true, now: now)
        return held
    }

    /// The upstream failed over it: try again when that is harmless, else its effect is unknown.
    func failedUpstream(_ detail: String) -> Disposition {
        context.permitsResend(of: operation, now: now) ? retried(detail) : uncertain(countsAsAnswered: true, detail)
    }

    /// Pending with full jitter; `floor` for answers that will not change soon.
    func retried(_ detail: String, floor: TimeSpan = .zero) -> Disposition {
        let wait = Backoff.fullJitter(attempt: operation.answeredAttempts, random: random)
        return Disposition(state: .pending, nextAttemptAt: now + floor + wait, detail: detail)
    }

    /// Parked, and tried again by itself: it holds back none but its own principal's meanwhile.
    func parkedForAWhile(_ detail: String) -> Disposition {
        let wait = Backoff.fullJitter(attempt: operation.answeredAttempts, random: random)
        return Disposition(state: .parked, reason: .auth, nextAttemptAt: now + .seconds(10) + wait, detail: detail)
    }

    /// The upstream says it processed nothing and names, or implies, a later moment. Such an answer counts no more than one that never
    /// reached it: a maintenance window must not use up the attempts of a queue.
    func throttled(_ answer: Answer, pausesUpstream: Bool) -> Disposition {
        let attempts = operation.answeredAttempts + operation.networkAttempts
        let moment = Backoff.throttled(
            until: RetryAfter.parse(answer.head.fields, now: now), attempt: min(attempts, 8), now: now, random: random)
        return Disposition(
            state: .pending, nextAttemptAt: moment, countsAsAnswered: false, pauseUpstreamUntil: pausesUpstream ? moment : nil,
            detail: answer.statusText)
    }

    /// Something else answered in the upstream's place: as if it had not been reached.
    func captive(_ detail: String) -> Disposition {
        let wait = Backoff.fullJitter(attempt: operation.networkAttempts, cap: Backoff.unsentCap, random: random)
        return Disposition(state: .pending, nextAttemptAt: now + wait, countsAsAnswered: false, isCaptive: true, detail: detail)
    }

    /// May have taken effect, and sending it again may do so twice; looked for until `max_processing`, then its policy applies.
    func uncertain(countsAsAnswered: Bool, reason: OperationReason = .lostAnswer, _ detail: String) -> Disposition {
        Disposition(
            state: .uncertain, reason: reason, nextAttemptAt: context.nextProbe(after: 0, now: now),
            countsAsAnswered: countsAsAnswered, detail: detail)
    }

    func dead(_ reason: OperationReason, _ detail: String) -> Disposition {
        Disposition(state: .dead, reason: reason, detail: detail)
    }
}
