// What an upstream's settings say about sending again, and which requests that makes safe (outbox.md §2.1, §2.4; RFC 9110 §9.2.2).
package import HTTPTypes

/// What a disposition depends on beside the operation and its attempt.
package struct ReplayContext: Hashable, Sendable {
    /// How often the effect of an operation is looked for before its policy applies.
    package static let probes = 3

    /// How the upstream takes keys.
    package var idempotency: IdempotencySettings
    /// What becomes of an operation whose effect stays unknown.
    package var uncertainPolicy: QueueSettings.Uncertain
    /// Answered attempts after which an operation is given up; one more makes it dead.
    package var answeredLimit: Int

    package init(idempotency: IdempotencySettings, uncertainPolicy: QueueSettings.Uncertain = .ask, answeredLimit: Int = 10) {
        self.idempotency = idempotency
        self.uncertainPolicy = uncertainPolicy
        self.answeredLimit = answeredLimit
    }

    /// Whether sending the operation again cannot add a second effect: its method is idempotent, or the upstream honours its key
    /// and still remembers it. The key's time starts at the first send, not at acceptance; `honoured: unknown` counts as no.
    package func permitsResend(of operation: Operation, now: Timestamp) -> Bool {
        permitsResend(method: operation.request.method, firstSentAt: operation.firstSentAt, now: now)
    }

    /// The same of its method and the moment of its first send.
    package func permitsResend(method: HTTPRequest.Method, firstSentAt: Timestamp?, now: Timestamp) -> Bool {
        if method.isIdempotent { return true }
        guard idempotency.honoured == .yes else { return false }
        guard let firstSentAt else { return true }
        // A first send in the future was under a clock that has been set back since: by more than the key's life, and nobody can tell.
        return (now - firstSentAt).magnitude < idempotency.ttl
    }

    /// When to look for the effect of an operation after `probes` looks: soon, then over the time its request may still run.
    package func nextProbe(after probes: Int, now: Timestamp) -> Timestamp {
        let longest = idempotency.maxProcessing
        return now + (probes == 0 ? min(.seconds(1), longest) : TimeSpan(milliseconds: longest.milliseconds / 2))
    }

    /// Until when what comes after the operation in its lane must wait once it has ended: so long its last lost attempt may take effect
    /// and undo that (outbox.md §2.4, the zombie attempt). Nil when none was lost, or something prevents it: a condition, or an
    /// honoured key where a later attempt was answered. Of one that was given up, a key prevents nothing.
    package func holdsLane(after operation: Operation, isDelivered: Bool, now: Timestamp) -> Timestamp? {
        if operation.isConditional || isDelivered && idempotency.honoured == .yes { return nil }
        return operation.lostAt.map { mayRunUntil(lostAt: $0, now: now) }
    }

    /// How long an attempt may still take effect. One that was lost "in the future" was so under a clock that has been set back since.
    func mayRunUntil(lostAt: Timestamp, now: Timestamp) -> Timestamp { min(lostAt, now) + idempotency.maxProcessing }

    /// Whether it must go on a fresh connection: on a reused one, a close before the answer says nothing about what the upstream did.
    package func needsFreshConnection(for operation: Operation, now: Timestamp) -> Bool {
        !permitsResend(of: operation, now: now)
    }
}

extension Operation {
    /// Applied only to the state its client saw (RFC 9110 §13.1).
    var isConditional: Bool { request.fields.contains(.ifMatch) || request.fields.contains(.ifNoneMatch) }
}

extension HTTPRequest.Method {
    /// RFC 9110 §9.2.2: several identical requests have the effect of one.
    package var isIdempotent: Bool {
        switch self {
        case .put, .delete, .get, .head, .options, .trace: true
        default: false
        }
    }
}
