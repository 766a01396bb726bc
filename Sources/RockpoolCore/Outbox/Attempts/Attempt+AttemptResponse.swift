// The table of docs/outbox.md#answers: the disposition of an operation for each status of its upstream's answer.
import HTTPTypes

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
