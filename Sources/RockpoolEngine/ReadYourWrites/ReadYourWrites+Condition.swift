// The state that a client reads, for the conditions of its next write (docs/outbox.md#optimistic-replies).
import HTTPTypes
import RockpoolCore
import RockpoolStore

extension ReadYourWrites {
    /// Returns the reason in words why a write's own condition fails on what its client reads; nil where only the upstream can decide.
    func contradiction(of operation: QueuedWriteDraft, for context: RequestContext) async -> String? {
        let fields = operation.request.fields
        guard fields.contains(.ifMatch) || fields.contains(.ifNoneMatch) else { return nil }
        return await state(of: context)?.contradiction(of: fields)
    }

    /// True if the client of a write reads that the item of the write is not there: it has deleted the item, or given up its creation.
    /// A PUT may create the item again, and an action restore it.
    func isDeleted(itemOf operation: QueuedWriteDraft, for context: RequestContext) async -> Bool {
        if context.namesUnmapped, let id = operation.entityID.flatMap({ LocalID($0) }), (try? await data.isGivenUp(id)) == true {
            return true
        }
        guard operation.request.method == .patch, let view = place(of: context),
            overlay.covers(upstream: view.upstream, collection: view.collection)
        else { return false }
        return await state(of: context)?.presence == .absent
    }

    /// Returns what the client reads of the item that a request names; nil if the request does not name an item.
    private func state(of context: RequestContext) async -> LocalCondition? {
        guard let view = place(of: context), view.entityID != nil else { return nil }
        var read = context
        read.exchange.request = read.exchange.request.unconditional
        read.exchange.request.method = .get
        let entries = await reads.lookup.entries(for: read)
        let copies = entries.filter(\.response.isKnownState)
        let latest = copies.max { $0.response.includesWritesUntil < $1.response.includesWritesUntil }
        let absence = entries.filter(\.response.isOwnAbsence).map(\.response.includesWritesUntil).max()
        let listed = latest == nil && absence == nil ? await lists.item(in: view, for: context) : nil
        let includes = latest?.response.includesWritesUntil ?? absence ?? listed?.at
        guard let writes = try? await foldedWrites(in: view, includes: includes) else { return nil }
        var value = listed.map { view.resource.body(of: $0.element) }
        if !writes.isEmpty, let latest, let bytes = try? await reads.lookup.content(of: latest, limit: Int(OutboundWrites.baseLimit)) {
            value = try? JSONValue.parse(bytes)
        }
        let pending = writes.contains { !$0.isDelivered }
        return
            switch ItemFold.fold(value, with: writes, resource: view.resource)
        {
        case .unchanged where latest != nil || listed != nil:
            LocalCondition(presence: .present, tags: copies.compactMap { $0.response.head.fields[.eTag].flatMap { EntityTag($0) } })
        case .unchanged: LocalCondition(presence: absence == nil ? .unknown : .absent)
        case .present(_, let last, _): LocalCondition(presence: .present, lastPending: pending ? last : nil)
        case .deleted: LocalCondition(presence: .absent)
        case .dirty(let value, let last, _):
            LocalCondition(presence: value == nil ? .unknown : .present, lastPending: pending ? last : nil)
        }
    }
}

extension StoredResponse {
    /// True if the copy says that the upstream has nothing under the URL any more, because a write through this proxy has removed it.
    fileprivate var isOwnAbsence: Bool { [404, 410].contains(head.status) && ownWrite?.isIncluded == true }
}
