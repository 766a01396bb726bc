// The base of a write: the representation that its client could have seen, pinned on acceptance (docs/outbox.md#base *base*).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

extension ReadYourWrites {

    /// Pins the representation that the client could have seen: the cached copy for this client with the client's own queued writes folded
    /// in. Stores its content and, where the write takes the base as its condition, its strong ETag.
    func pinBase(of operation: inout QueuedWriteDraft, for context: RequestContext) async {
        guard let view = place(of: context), view.entityID != nil, [.put, .patch, .delete].contains(context.request.method) else { return }
        let copy = await storedItem(for: context)
        if operation.takesBase, let copy {
            operation.baseFetchedAt = copy.response.includesWritesUntil
            operation.baseETag = EntityTag.condition(in: copy.response.head.fields[.eTag])
        }
        // The client builds on a state that a merge has replaced: what it has seen is not known any more.
        for sequence in operation.conditionedOn where (try? await data.isMerged(sequence)) ?? true { return }
        operation.base = await seen(in: view, copy: copy, before: operation)
    }

    /// Returns the cached representation of the request's target; nil when there is none or it is invalidated.
    func storedItem(for context: RequestContext) async -> CacheEntry? {
        var read = context
        read.exchange.request.method = .get
        read.exchange.request = read.exchange.request.unconditional
        return await reads.lookup.entries(for: read).filter { $0.response.isKnownState }.max {
            $0.response.includesWritesUntil < $1.response.includesWritesUntil
        }
    }

    /// Returns the representation that the client had before this write; nil where it is unknown. The base is never guessed: a client that
    /// names another ETag than the copy's in `If-Match` has seen another representation.
    private func seen(in view: OverlayScope, copy: CacheEntry?, before operation: QueuedWriteDraft) async -> Conflict.Side? {
        var writes = await foldedWrites(in: view, fetchedAt: copy?.response.includesWritesUntil)
        // The write builds on the operation that its local ETag names, so later operations are not part of its base.
        if let named = operation.conditionedOn.max() { writes.removeAll { $0.sequence > named } }
        let etag = copy?.response.head.fields[.eTag]
        if operation.conditionedOn.isEmpty, let condition = operation.request.fields[.ifMatch] {
            guard let tag = etag.flatMap({ EntityTag($0) }), EntityTag.list(in: condition).contains(where: tag.matchesWeakly) else {
                return nil
            }
        }
        let bytes = await bytes(of: copy)
        guard !writes.isEmpty else {
            return bytes.map { Conflict.Side(body: $0, contentType: copy?.response.head.fields[.contentType], etag: etag) }
        }
        let value = bytes.flatMap { try? JSONValue.parse($0) }
        switch ItemFold.fold(value, with: writes, resource: view.resource) {
        case .present(let shown, _, _):
            let body = shown.serialized()
            return body.count <= OutboundWrites.baseLimit ? Conflict.Side(body: body, contentType: "application/json") : nil
        case .unchanged, .deleted, .dirty: return nil
        }
    }

    private func bytes(of copy: CacheEntry?) async -> [UInt8]? {
        guard let copy else { return nil }
        return try? await reads.lookup.content(of: copy, limit: Int(OutboundWrites.baseLimit))
    }
}
