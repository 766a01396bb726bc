// The evaluation of one attempt: the disposition of an operation for each status of its upstream's answer, or without one (the table of
// docs/outbox.md#answers).
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

// MARK: - The answer

/// Signals in an answer besides its status: a captive portal, an idempotency layer's error (docs/outbox.md#answers).
struct AttemptResponse {
    let head: ResponseHead
    /// The beginning of the body, at most a few KiB.
    let bodyStart: [UInt8]
    let request: RequestHead

    var statusText: String { head.fields[.retryAfter].map { "\(head.status), Retry-After: \($0)" } ?? "\(head.status)" }
    var location: String? { head.fields[.location] }
    /// The location for people, without secrets.
    var shownLocation: String? { location.map { String(SecretParameters.redacted(url: $0).prefix(300)) } }

    /// The sign that the answer did not come from the upstream; nil without one.
    var portal: PortalSuspicion? { PortalSuspicion.judge(head, toWrite: request, bodyStart: bodyStart) }

    /// True if a 409 comes from an idempotency layer while the first request with the key still runs, not from an edit conflict.
    var saysKeyInProgress: Bool { concernsKey || head.fields[.retryAfter] != nil }

    /// True if the body mentions the idempotency key, as the problem documents of the draft, of Stripe and of others do.
    var concernsKey: Bool {
        String(decoding: bodyStart.prefix(.kib(4)), as: UTF8.self).lowercased().contains("idempoten")
    }

    /// OASIS repeatable requests: the key is older than the server's key storage; not an edit conflict.
    var saysFirstSentTooOld: Bool {
        head.fields[.repeatabilityResult]?.lowercased() == "rejected"
    }
}

// MARK: - The table of answers

// The table of docs/outbox.md#answers: the disposition of an operation for each status of its upstream's answer.
extension Attempt {
    /// The number of equal answers after which 404 to DELETE is believed of an upstream that has shown no effect yet.
    private static let answersBelieved = 3
    /// The least time between two of them.
    private static let disbelief = TimeSpan.seconds(3)

    func disposition(of answer: AttemptResponse) -> Disposition {
        if !context.reading.isJudged, let portal = answer.portal { return captive(detail: portal.detail) }
        switch answer.head.status {
        case 200...299: return delivered(answer)
        // The collection is there already (RFC 4918 §9.3.1); programs make sure of it before every file.
        case 405 where operation.request.method.rawValue == "MKCOL": return Disposition(state: .delivered, reason: .probed)
        case 300...399: return redirected(answer)
        case 400...499: return refused(answer)
        case 501, 505: return dead(.rejected, detail: answer.statusText)
        case 503: return throttled(answer, pausesUpstream: true)
        default: return failedUpstream(detail: answer.statusText)
        }
    }

    /// An answer of 2xx is a refusal where its body says so (docs/outbox.md#no-success).
    private func delivered(_ answer: AttemptResponse) -> Disposition {
        if let failure = AnswerFailure.of(answer.head, body: answer.bodyStart, by: context.reading.success) {
            return dead(.rejected, detail: failure.detail)
        }
        if case .inline(let sent) = operation.body, let error = GraphQLResponse.error(in: answer.bodyStart),
            GraphQLOperation.of(body: sent) != nil
        {
            return dead(.rejected, detail: "GraphQL: \(error)")
        }
        return switch answer.head.status {
        case 202: Disposition(state: .delivered, reason: .accepted)
        case 207: Disposition(state: .delivered, detail: "207: parts of it may have failed")
        case let status where context.reading.isForeign:
            Disposition(state: .delivered, detail: "\(status): the answer does not describe the entity")
        default: Disposition(state: .delivered)
        }
    }

    /// 301, 307 and 308 keep the method and are followed within the origin before the answer is judged; this handles the redirects that
    /// were not followed.
    private func redirected(_ answer: AttemptResponse) -> Disposition {
        switch answer.head.status {
        case 302, 303: return ledElsewhere(answer)
        case 301, 307, 308:
            return Disposition(state: .parked, reason: .redirected, detail: "redirected to \(answer.shownLocation ?? "nowhere")")
        default: return dead(.rejected, detail: answer.statusText)
        }
    }

    /// A web application answers a form with a redirect to what it has made of it. A redirect to any other place says nothing about the write
    /// (docs/outbox.md#redirects).
    private func ledElsewhere(_ answer: AttemptResponse) -> Disposition {
        guard !context.reading.isLogout, !context.reading.namesEntity, let location = answer.location else {
            return Disposition(state: .delivered)
        }
        let place = WriteRedirect(location, from: operation.request).place
        if place == .own { return Disposition(state: .delivered) }
        let shown = answer.shownLocation ?? ""
        // A place for everything may be the home page behind every form as well: then a resend would repeat the effect.
        guard place == .login || context.reading.isCommonPlace && context.permitsResend(of: operation, now: now) else {
            return uncertain(
                countsAsAnswered: true, reason: .redirected,
                detail: "\(answer.head.status): redirected to \(shown), which is neither its entity nor its collection")
        }
        // An anonymous write has no user to sign in: either the network redirects, or the upstream will redirect again.
        if operation.principal == nil { return parkedForAWhile(detail: "redirected to a login page: \(shown)") }
        return Disposition(state: .parked, reason: .auth, countsAsAnswered: false, detail: "redirected to a login page: \(shown)")
    }

    private func refused(_ answer: AttemptResponse) -> Disposition {
        let method = operation.request.method
        switch answer.head.status {
        case 407 where operation.principal == nil:
            return parkedByProxy(detail: answer.statusText)
        // No client can supply a credential for an anonymous write.
        case 401 where operation.principal == nil, 419 where operation.principal == nil:
            return dead(.rejected, detail: answer.statusText)
        case 401, 407, 419:
            return Disposition(state: .parked, reason: .auth, countsAsAnswered: false, detail: answer.statusText)
        case 402, 403:
            // One retry with the principal's credential at that time; the second refusal is final.
            let mayBeStale = operation.principal != nil && operation.answeredAttempts == 0
            return mayBeStale ? retried(detail: answer.statusText) : dead(.rejected, detail: answer.statusText)
        // A server that comes back broken answers 404 to everything, and has deleted nothing.
        case 404 where method == .delete && !context.reading.hasEffect && operation.answeredAttempts + 1 < Self.answersBelieved:
            return retried(detail: answer.statusText, floor: Self.disbelief)
        case 404 where method == .delete, 410 where method == .delete:
            return Disposition(state: .delivered, reason: .alreadyGone)
        // The source was moved by an attempt whose answer was lost.
        case 404 where method.rawValue == "MOVE" && operation.lostAt != nil, 410 where method.rawValue == "MOVE" && operation.lostAt != nil:
            return Disposition(state: .delivered, reason: .probed)
        case 404 where (method == .put || method == .patch) && !context.reading.knowsEntity:
            return dead(.rejected, detail: answer.statusText)
        case 404 where method == .put || method == .patch, 410 where method == .put || method == .patch:
            return Disposition(state: .conflicted, reason: .editDelete, detail: answer.statusText)
        case 405 where method == .put && operation.request.createsOnly:
            // The upstream creates by POST only, so a recreation after a deletion is sent as a POST
            // (docs/reference/behaviour.md#conflicts).
            return Disposition(state: .conflicted, reason: .editDelete, detail: answer.statusText)
        case 408, 421, 425:
            return throttled(answer, pausesUpstream: false)
        case 429:
            return throttled(answer, pausesUpstream: true)
        case 409 where answer.saysKeyInProgress:
            return throttled(answer, pausesUpstream: false)
        case 412 where answer.saysFirstSentTooOld:
            return dead(.tooOld, detail: "412: first sent too long ago for its key")
        case 409, 412:
            return Disposition(state: .conflicted, reason: method == .delete ? .deleteEdit : .editEdit, detail: answer.statusText)
        case 428:
            return Disposition(state: .conflicted, reason: .editEdit, detail: "428: the upstream asks for a precondition")
        case 422 where answer.concernsKey:
            return uncertain(countsAsAnswered: true, reason: .rejected, detail: "422: the upstream has seen this key with another request")
        case 423, 424:
            return retried(detail: answer.statusText, floor: .seconds(10))
        default:
            return dead(.rejected, detail: answer.statusText)
        }
    }
}
