// What an upstream's settings say about sending again, and which requests that makes safe (outbox.md §2.1, §2.4; RFC 9110 §9.2.2).
package import HTTPTypes

/// What a disposition depends on beside the operation and its attempt.
package struct ReplayContext: Hashable, Sendable {
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
        if operation.request.method.isIdempotent { return true }
        guard idempotency.honoured == .yes else { return false }
        guard let firstSent = operation.firstSentAt else { return true }
        return now - firstSent < idempotency.ttl
    }

    /// Whether it must go on a fresh connection: on a reused one, a close before the answer says nothing about what the upstream did.
    package func needsFreshConnection(for operation: Operation, now: Timestamp) -> Bool {
        !permitsResend(of: operation, now: now)
    }
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
