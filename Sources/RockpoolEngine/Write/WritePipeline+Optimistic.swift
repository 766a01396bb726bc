// The reply that stands in for the upstream's, with `offline_response: optimistic` (docs/outbox.md#optimistic-replies).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

extension WritePipeline {
    /// Returns the refusal of a write that the state which its client reads contradicts: the item was deleted; or, only for optimistic
    /// replies, which stand in for the upstream's, its own condition fails. Nil if anything of the write was sent.
    func contradiction(of operation: QueuedWriteDraft, context: RequestContext) async -> Problem? {
        guard let resource = context.plan.entity?.resource, operation.firstSentAt == nil else { return nil }
        if let problem = ownWrites.missing(below: context) { return problem }
        if await ownWrites.isDeleted(itemOf: operation, for: context) {
            return Problem(.notFound, detail: "\(context.original.path) was deleted")
        }
        guard await isOptimistic(resource, context: context), !context.wishes.respondsAsync else { return nil }
        return await ownWrites.contradiction(of: operation, for: context).map { Problem(.preconditionFailed, detail: $0) }
    }

    /// True if writes of the resource are answered in the upstream's place: as declared; for a learned one, once the upstream itself has
    /// answered such a write.
    private func isOptimistic(_ resource: Resource, context: RequestContext) async -> Bool {
        guard resource.learned != nil, let upstream = context.plan.upstream else { return resource.offlineResponse == .optimistic }
        return await notifier.replies.form(for: WriteRoute(of: context.request, plan: context.plan), at: upstream.name) != nil
    }

    /// Returns the optimistic reply if the resource is configured for it, in the form of the API's own; nil where none can be computed, and 202 is
    /// sent instead.
    func optimisticReply(to operation: QueuedWriteDraft, context: RequestContext) async -> OptimisticReply? {
        guard let resource = context.plan.entity?.resource, await isOptimistic(resource, context: context) else { return nil }
        let write = FoldedWrite(operation, action: context.plan.entity?.action, in: data)
        let route = WriteRoute(of: context.request, plan: context.plan)
        let form = await notifier.replies.form(for: route, at: operation.upstream)
        var (base, isKnown): (JSONValue?, Bool) = (nil, false)
        if let view = ownWrites.place(of: context), view.entityID != nil {
            (base, isKnown) = await ownWrites.shownItem(in: view, for: context)
        }
        var reply = OptimisticReply.decide(write, base: base, baseIsKnown: isKnown, resource: resource, form: form)
        if reply?.body != nil, reply?.type == nil { reply?.type = await ownWrites.mediaType(for: context) }
        return reply
    }

    func reply(_ optimistic: OptimisticReply, to operation: QueuedWrite, context: RequestContext) -> Reply {
        var head = ResponseHead(status: optimistic.status, fields: [.cacheControl: "no-store"])
        head.note(operation)
        if let id = operation.localID {
            head.fields[.location] = ServerID(text: id.text).target(in: context.original, resource: context.plan.entity?.resource)
        }
        let base = operation.baseETag.flatMap { EntityTag($0) }
        let tag = LocalETag(sequence: operation.sequence, base: base).fieldValue
        switch optimistic.content {
        case .nothing:
            // The state that the write has made, for the condition of the next one.
            if operation.request.method != .delete { head.fields[.eTag] = tag }
            return Reply(head: head, body: .none(length: nil), trace: context.trace)
        case .fixed(let text):
            head.fields[.contentType] = optimistic.type ?? "application/json"
            return Reply(head: head, body: .bytes(ByteBuffer(string: text)), trace: context.trace)
        case .item(var value):
            head.fields[.contentType] = optimistic.type ?? "application/json"
            guard operation.request.method != .delete else {
                return Reply(head: head, body: .bytes(ByteBuffer(bytes: value.serialized())), trace: context.trace)
            }
            head.fields[.eTag] = tag
            if let resource = context.plan.entity?.resource {
                value = LocalVersions(resource).shown(value, after: operation.sequence, etag: base)
            }
            return Reply(head: head, body: .bytes(ByteBuffer(bytes: value.serialized())), trace: context.trace)
        }
    }
}

extension ResponseHead {
    /// Names the operation of this write and its state (docs/reference/headers.md#fields-that-rockpool-sets).
    mutating func note(_ operation: QueuedWrite) {
        fields[.rockpoolOperation] = operation.id
        fields[.rockpoolState] = operation.state.rawValue
        fields[.rockpoolLocalID] = operation.localID?.text
        fields[.rockpoolExpires] = operation.expiresAt.map { HTTPDate.format($0) }
    }
}
