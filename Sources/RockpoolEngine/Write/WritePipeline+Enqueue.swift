// Accepts a write into the outbox and builds its reply (docs/outbox.md#client-view; RFC 7240, RFC 9110 §15.3.3).
import HTTPTypes
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore

extension WritePipeline {
    /// Stores the operation and replies with 202, the optimistic reply, or the upstream's response if the client waits for it.
    /// - Parameter merge: how long the client waits for the outcome of merging; nil if nothing has to be merged.
    func enqueue(
        _ draft: ReceivedWrite, body: Spool.Whole, context: inout RequestContext, awaiting merge: Duration? = nil
    ) async throws -> Reply {
        var operation = draft.operation
        if let upstream = context.plan.upstream { try await notifier.adopt(upstream) }
        await ownWrites.pinBase(of: &operation, for: context)
        // Compute the reply before the operation is stored, otherwise the write would be folded into it twice.
        let blocking = try await blockingState(before: operation)
        if blocking == nil, merge == nil, let problem = await failedCondition(of: operation, context: context) {
            body.discard()
            return refuse(problem, context: &context)
        }
        let optimistic =
            context.wishes.respondsAsync || blocking != nil || merge != nil ? nil : await optimisticReply(to: operation, context: context)
        let stored: QueuedWrite
        do {
            try Task.checkCancellation()
            operation.share = context.plan.upstream.map { renewal.share(of: operation.principal, at: $0) }
            let taken = try await data.take(operation)
            stored = taken.operation
            // Since `adopt`, another write may have removed this host, because no open operation needed it yet.
            notifier.adoptHosts(of: [stored])
            await renewal.checkProof(of: stored)
            if let squashed = taken.squashed { notifier.tell(squashed) }
        } catch DataStoreError.duplicateKey {
            // Another request with the same key was committed first.
            if let earlier = try await earlierAnswer(to: operation, context: context) {
                body.discard()
                return earlier
            }
            throw DataStoreError.duplicateKey(id: operation.id)
        }
        context.trace.verdict = .queued
        context.trace.record(.enqueued(operation: stored.id))
        context.trace.cacheStatus = CacheStatus(hit: false, fwd: .method, detail: "queued")
        notifier.tell(stored)
        if let optimistic { return reply(optimistic, to: stored, context: context) }
        let form = QueuedReply(to: context.original, route: context.plan.route)
        if let merge, let settled = await settled(stored.id, within: merge) {
            guard settled.state == .delivered, let result = settled.result else {
                return await accepted(settled, form: form, trace: context.trace)
            }
            var reply = Reply(head: result.head, body: .bytes(ByteBuffer(bytes: result.body)), trace: context.trace)
            reply.head.note(settled)
            return reply
        }
        var reply = await answered(stored, for: context)
        if let blocking, reply.head.status == 202 { reply.head.fields[.rockpoolState] = blocking.rawValue }
        return reply
    }

    /// Returns the refusal of a write whose own condition already fails on what its client reads; only for optimistic replies, which stand
    /// in for the upstream's, and only if nothing of the write was sent.
    private func failedCondition(of operation: QueuedWriteDraft, context: RequestContext) async -> Problem? {
        guard context.plan.entity?.resource?.offlineResponse == .optimistic, !context.wishes.respondsAsync, operation.firstSentAt == nil
        else { return nil }
        return await ownWrites.contradiction(of: operation, for: context).map { Problem(.preconditionFailed, detail: $0) }
    }

    /// Returns the state of an earlier write of the same client in the lane that waits for a person; nil without one.
    private func blockingState(before operation: QueuedWriteDraft) async throws -> OperationState? {
        let standings = try await data.standings(lane: operation.lane, upstream: operation.upstream)
        return standings.filter { $0.principal == operation.principal && [.dead, .conflicted].contains($0.state) }
            .min { $0.firstPlace < $1.firstPlace }?.state
    }

    /// Repeats the reply for a client key that was used before; 422 when the request differs (docs/outbox.md#client-view).
    func earlierAnswer(to operation: QueuedWriteDraft, context: RequestContext) async throws -> Reply? {
        guard operation.keyIsClients,
            let (earlier, isSame) = try await data.operation(
                clientKey: operation.idempotencyKey, principal: operation.principal, fingerprint: operation.fingerprint)
        else { return nil }
        guard isSame else {
            return Reply(
                Problem(.keyReused, detail: "idempotency key \(operation.idempotencyKey) was used for another request"), context.trace)
        }
        var again = operation
        again.localID = earlier.localID
        if !context.wishes.respondsAsync, let optimistic = await optimisticReply(to: again, context: context) {
            return reply(optimistic, to: earlier, context: context)
        }
        return await answered(earlier, for: context)
    }

    // MARK: replies

    /// Replies with 202; with `Prefer: respond-async, wait=N`, with the upstream's response if it arrives in time (RFC 7240 §4.1, §4.3).
    private func answered(_ operation: QueuedWrite, for context: RequestContext) async -> Reply {
        let (wishes, trace) = (context.wishes, context.trace)
        var reply = await accepted(operation, form: QueuedReply(to: context.original, route: context.plan.route), trace: trace)
        guard wishes.respondsAsync else { return reply }
        if let wait = wishes.wait, let settled = await settled(operation.id, within: wait), let result = settled.result {
            reply = Reply(head: result.head, body: .bytes(ByteBuffer(bytes: result.body)), trace: trace)
            reply.head.fields[.rockpoolOperation] = settled.id
            reply.head.fields[.rockpoolState] = settled.state.rawValue
        }
        reply.head.fields[.preferenceApplied] = wishes.wait.map { "respond-async, wait=\($0.components.seconds)" } ?? "respond-async"
        return reply
    }

    /// Returns the operation once it has ended, is dead or is in conflict; nil when `wait` is over before.
    private func settled(_ id: String, within wait: Duration) async -> QueuedWrite? {
        let deadline = ContinuousClock.now + wait
        while true {
            let version = events.version
            guard let operation = try? await data.operation(id: id) else { return nil }
            if operation.state.hasEnded || operation.state == .dead || operation.state == .conflicted { return operation }
            guard await events.change(after: version, before: deadline) else { return nil }
        }
    }

    /// Builds the 202 reply with the status document (RFC 9110 §15.3.3).
    private func accepted(_ operation: QueuedWrite, form: QueuedReply, trace: Trace) async -> Reply {
        var head = ResponseHead(status: 202, fields: [.contentType: "application/json", .cacheControl: "no-store"])
        head.fields[.location] = operation.statusPath
        head.note(operation)
        // The standing is in other rows. If they cannot be read, reply without it, because the write is already accepted.
        let standing = operation.needs.isEmpty ? nil : try? await documents.statusDocument(of: operation)
        let document = standing ?? OperationDocument.json(of: operation)
        switch form {
        case .document: return Reply(head: head, body: .bytes(ByteBuffer(bytes: document.serialized())), trace: trace)
        case .graphQL:
            let response = GraphQLResponse.queued(document, to: operation.body.inlineBytes)
            return Reply(head: head, body: .bytes(ByteBuffer(bytes: response.serialized())), trace: trace)
        case .empty: break
        case .s3(let status):
            head.status = status
            if status == 200 { head.fields[.eTag] = LocalETag(sequence: operation.sequence, base: nil).fieldValue }
        }
        head.fields[.contentType] = nil
        return Reply(head: head, body: .none(length: nil), trace: trace)
    }

    /// Returns the optimistic reply if the resource is configured for it; nil where none can be computed, and 202 is sent instead.
    private func optimisticReply(to operation: QueuedWriteDraft, context: RequestContext) async -> OptimisticReply? {
        guard let resource = context.plan.entity?.resource, resource.offlineResponse == .optimistic else { return nil }
        let write = FoldedWrite(operation, action: context.plan.entity?.action, in: data)
        guard let view = ownWrites.place(of: context), view.entityID != nil else {
            return OptimisticReply.decide(write, base: nil, baseIsKnown: false, resource: resource)
        }
        let shown = await ownWrites.shownItem(in: view, for: context)
        return OptimisticReply.decide(write, base: shown.value, baseIsKnown: shown.isKnown, resource: resource)
    }

    private func reply(_ optimistic: OptimisticReply, to operation: QueuedWrite, context: RequestContext) -> Reply {
        var head = ResponseHead(status: optimistic.status, fields: [.cacheControl: "no-store"])
        head.note(operation)
        if let id = operation.localID {
            let path = context.original.path
            head.fields[.location] = (path.hasSuffix("/") ? path : path + "/") + id.text
        }
        guard let value = optimistic.body else { return Reply(head: head, body: .none(length: nil), trace: context.trace) }
        head.fields[.contentType] = "application/json"
        head.fields[.eTag] = LocalETag(sequence: operation.sequence, base: operation.baseETag.flatMap { EntityTag($0) }).fieldValue
        return Reply(head: head, body: .bytes(ByteBuffer(bytes: value.serialized())), trace: context.trace)
    }
}

extension ResponseHead {
    /// Names the operation of this write and its state (docs/reference/headers.md#fields-that-rockpool-sets).
    fileprivate mutating func note(_ operation: QueuedWrite) {
        fields[.rockpoolOperation] = operation.id
        fields[.rockpoolState] = operation.state.rawValue
        fields[.rockpoolLocalID] = operation.localID?.text
    }
}
