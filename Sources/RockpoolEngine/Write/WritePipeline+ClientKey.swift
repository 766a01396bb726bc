// Requests that are an earlier write again: by an idempotency key of their client (docs/outbox.md#client-view), or as equal requests in quick
// succession (docs/outbox.md#repeats).
import HTTPTypes
import RockpoolCore
import RockpoolStore
import Synchronization

extension WritePipeline {
    /// Repeats the reply for a client key that was used before; 422 when the request differs (docs/outbox.md#client-view).
    func earlierAnswer(to operation: QueuedWriteDraft, context: RequestContext) async throws -> Reply? {
        guard operation.keyIsClients,
            let (earlier, isSame) = try await data.operation(
                clientKey: operation.idempotencyKey, principal: operation.principal, upstream: operation.upstream,
                fingerprint: operation.fingerprint)
        else { return nil }
        guard isSame else {
            return Reply(
                Problem(.keyReused, detail: "idempotency key \(operation.idempotencyKey) was used for another request"), context.trace)
        }
        var again = operation
        (again.newItem, again.entityID, again.entity) = (earlier.newItem, earlier.entityID, earlier.entity)
        if !context.wishes.respondsAsync, let optimistic = await optimisticReply(to: again, context: context) {
            return reply(optimistic, to: earlier, context: context)
        }
        return await answered(earlier, form: await notifier.replies.form(for: context), for: context)
    }

    /// Claims the key of a client's write that repeats no other one, as far as that is known without asking the database; nil otherwise.
    func claimNewKey(of operation: QueuedWriteDraft) -> KeyClaim? {
        guard case .first(let claim) = keysUnderWay.claim(keyOf: operation) else { return nil }
        // Looked for after the claim: an earlier request with this key is by now either in the outbox or still in progress.
        return data.mayHold(keyOf: operation) ? nil : claim
    }

    /// Answers a request that repeats a write that waits; nil if it is a write of its own.
    func repeatedWrite(
        _ operation: QueuedWriteDraft, body: Spool.Whole, context: inout RequestContext
    ) async throws -> Reply? {
        guard let same = try await data.repeated(operation) else { return nil }
        body.discard()
        if let problem = acknowledgements.problem(of: operation, from: context.exchange, now: now()) {
            return refuse(problem, context: &context)
        }
        return await reply(repeating: same, context: &context)
    }

    /// Replies with the operation that a request repeats.
    func reply(repeating same: QueuedWrite, context: inout RequestContext) async -> Reply {
        context.trace.verdict = .queued
        context.trace.record(.enqueued(operation: same.id))
        context.trace.cacheStatus = CacheStatus(hit: false, fwd: .method, detail: "queued")
        events.tell(.operation(id: same.id, state: same.state, isNews: false))
        var reply = await accepted(same, form: await notifier.replies.form(for: context, isLearned: false), trace: context.trace)
        reply.head.fields[.rockpoolRepeat] = "1"
        return reply.naming(data.holder(of: same))
    }
}

extension KeysUnderWay.Standing {
    /// The refusal of a request with a key that is under way; nil for the first one.
    func problem(of key: String) -> Problem? {
        switch self {
        case .first: nil
        case .reused: Problem(.keyReused, detail: "idempotency key \(key) is being used for another request")
        case .underWay:
            Problem(.conflict, detail: "a request with idempotency key \(key) is being sent; ask again in a moment", retryAfter: 1)
        }
    }

    func leave() { if case .first(let claim) = self { claim.leave() } }
}

extension QueuedWriteDraft {
    /// Marks a write that is only acknowledged, so that equal requests are found to be its repeats. After any other reply its client has no
    /// reason to repeat it.
    mutating func noteReply(isAcceptance: Bool) {
        mayRepeat = mayRepeat && isAcceptance
        request.fields[.rockpoolRepeat] = mayRepeat ? RepeatMark().text : nil
    }
}

// MARK: - Keys under way

/// Client keys of requests that are being sent or stored.
final class KeysUnderWay: Sendable {
    enum Standing {
        /// No other request with this key is under way, until the claim is left.
        case first(KeyClaim)
        /// The same request is under way.
        case underWay
        /// Another request is under way with this key.
        case reused
    }

    fileprivate struct Key: Hashable {
        var upstream: String
        var principal: String?
        var key: String

        init(_ operation: QueuedWriteDraft) {
            upstream = operation.upstream
            principal = operation.principal
            key = operation.idempotencyKey
        }
    }

    private let fingerprints = Mutex<[Key: [UInt8]]>([:])

    /// Checks and registers the key in one step, so that only one of two concurrent requests is the first.
    func claim(keyOf operation: QueuedWriteDraft) -> Standing {
        let key = Key(operation)
        return fingerprints.withLock { fingerprints in
            if let earlier = fingerprints[key] { return earlier == operation.fingerprint ? .underWay : .reused }
            fingerprints[key] = operation.fingerprint
            return .first(KeyClaim(key, among: self))
        }
    }

    fileprivate func leave(_ key: Key) { fingerprints.withLock { $0[key] = nil } }
}

/// The claim of one key, until it is left, at the latest by its end.
final class KeyClaim: Sendable {
    private let keys: KeysUnderWay
    private let key: Mutex<KeysUnderWay.Key?>

    /// - Parameter key: which was claimed as the first.
    fileprivate init(_ key: KeysUnderWay.Key, among keys: KeysUnderWay) {
        self.keys = keys
        self.key = Mutex(key)
    }

    deinit { leave() }

    func leave() {
        let key = key.withLock { key in
            defer { key = nil }
            return key
        }
        if let key { keys.leave(key) }
    }
}
