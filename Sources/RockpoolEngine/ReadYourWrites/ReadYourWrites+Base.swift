// The state that a client has in front of it: the base of its write, pinned on acceptance (docs/outbox.md#base *base*), and what the
// conditions of its write meet (docs/outbox.md#optimistic-replies).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

extension ReadYourWrites {
    /// Pins what the client had in front of it: the representation that it was shown last, with the client's own queued writes folded in.
    /// Stores its content and, where the write takes the base as its condition, its strong ETag.
    /// - Parameter condition: the version under which the write was sent already; nil if it was sent under none.
    func pinBase(of operation: inout QueuedWriteDraft, sentUnder condition: String?, for context: RequestContext) async {
        guard context.request.changesState else { return }
        defer {
            // It is sent again under the same: only then is that harmless.
            if let condition, operation.baseETag == nil {
                (operation.baseETag, operation.baseIncludes) = (condition, operation.baseIncludes ?? cache.ticks.next())
            }
        }
        operation.reach = sight.reach(of: context.request.url, for: context.viewer)
        guard let view = place(of: context), view.entityID != nil else {
            guard operation.takesBase, context.plan.entity?.resource == nil else { return }
            switch ground(ofUndeclared: context) {
            case .shown(let seen):
                (operation.baseETag, operation.baseIncludes) = (seen.condition, seen.includes ?? cache.ticks.next())
                operation.baseSeen = seen.seen
            // The version that its own last write has made.
            case .written(let version?): (operation.baseETag, operation.baseIncludes) = (version, cache.ticks.next())
            case .written, .unknown: break
            }
            return
        }
        let state = await knownState(in: view, for: context, replacement: operation.replacement)
        if operation.takesBase, let seenAt = state.seenAt {
            operation.baseIncludes = seenAt
            operation.baseETag = state.etag
        }
        operation.baseSeen = state.seen
        // The client builds on a state that a merge has replaced: what it has seen is not known any more.
        for sequence in operation.conditionedOn where (try? await data.isMerged(sequence)) ?? true { return }
        operation.base = await seen(in: view, state: state, before: operation)
    }

    /// Returns the strong ETag of the version that the client had in front of it; nil where none is known. A live write carries it as its
    /// condition, as a queued one does.
    /// - Parameter replacement: the whole representation that the write puts there; nil for any other write.
    func knownETag(for context: RequestContext, replacement: JSONValue?) async -> String? {
        guard let view = place(of: context), view.entityID != nil else {
            guard context.plan.entity?.resource == nil else { return nil }
            return ground(ofUndeclared: context).condition
        }
        return await knownState(in: view, for: context, replacement: replacement).etag
    }

    /// True if a write to an item of a declared resource, or to a path of which its client has seen a version.
    func knowsState(of context: RequestContext) -> Bool {
        guard context.plan.entity?.resource == nil else { return true }
        return ground(ofUndeclared: context).condition != nil
    }

    /// True if a write is to an item that no copy shows, in a collection in which something waits.
    func mayAddressNewItem(_ context: RequestContext) async -> Bool {
        guard !context.namesUnmapped, let view = place(of: context), let id = view.entityID, LocalID(id) == nil,
            overlay.covers(upstream: view.upstream, collection: view.collection), await storedItem(for: context) == nil
        else { return false }
        return await lists.item(in: view, for: context) == nil
    }

    /// Returns what a write to an undeclared path builds on. An open write of its client below the path or above it may change what is there, as
    /// may one to the path itself whose effect is not known.
    private func ground(ofUndeclared context: RequestContext) -> Sight.Ground {
        guard let upstream = context.plan.upstream?.name, context.plan.route?.kind != .s3,
            !overlay.files.lacksWrite(
                context.request, upstream: upstream, principal: context.identity.principal,
                within: sight.reach(of: context.request.url, for: context.viewer)),
            FilePath(context.request.target).parent.map({ overlay.files.folds(upstream: upstream, path: $0) }) != true
        else { return .unknown }
        return sight.ground(of: context.request.url, for: context.viewer)
    }

    /// The newest state of an item that its client could have seen, without queued writes.
    private struct KnownState {
        var body: [UInt8]?
        var contentType: String?
        var etag: String?
        /// Own writes that have ended by then are part of it; nil when nothing is known.
        var seenAt: Tick?
        /// True if it is known from a list only, which may lack members.
        var isListed = false
        /// When and from where its client got it, where that is known.
        var seen: BaseSeen?

        /// Notes the client's writes that were delivered since: a crash may have kept their effects from the copy. After an action nothing
        /// is known; after another write the version is that of its answer.
        mutating func note(_ delivered: [QueuedWrite], isAction: (RequestHead) -> Bool) {
            let ended = { (write: QueuedWrite) in (write.ended ?? .first, write.sequence) }
            for write in delivered.sorted(by: { ended($0) < ended($1) }) {
                if !isAction(write.request) {
                    etag = EntityTag.condition(in: write.result?.head.fields[.eTag])
                } else if let ended = write.ended, ended > seenAt ?? .first {
                    // A copy of the same moment includes the action's answer.
                    self = KnownState(seenAt: ended)
                }
            }
        }
    }

    /// Returns the item's own copy, or its element in a list that was fetched later and shows another state: a list has no ETag of the item.
    private func knownState(in view: OverlayScope, for context: RequestContext, replacement: JSONValue?) async -> KnownState {
        var (copy, changedAt) = await storedStates(for: context)
        if copy == nil { changedAt = max(changedAt ?? .first, cache.ownWrite(to: context.request.url) ?? .first) }
        var state = KnownState(seenAt: max(copy?.response.includesWritesUntil ?? .first, changedAt ?? .first))
        if state.seenAt == .first { state.seenAt = nil }
        if let copy, copy.response.includesWritesUntil == state.seenAt {
            state.body = try? await reads.lookup.content(of: copy, limit: Int(OutboundWrites.baseLimit))
            state.contentType = copy.response.head.fields[.contentType]
            state.etag = EntityTag.condition(in: copy.response.head.fields[.eTag])
            state.isListed = copy.response.head.fields.contains(.rockpoolListed)
        }
        if let listed = await lists.item(in: view, for: context, after: state.seenAt) {
            let object = state.body.flatMap { try? JSONValue.parse($0) }.flatMap { view.resource.object(in: $0) }
            if object.map({ !listed.element.agrees(with: $0) }) ?? true {
                state = KnownState(
                    body: view.resource.body(of: listed.element).serialized(), contentType: "application/json", etag: nil,
                    seenAt: listed.at, isListed: true)
            }
        }
        let reach = sight.reach(of: context.request.url, for: context.viewer)
        let late = overlay.writes(
            upstream: view.upstream, collection: view.collection, entityID: view.entityID, principal: view.principal,
            includes: state.seenAt
        ).filter { $0.deliveredAt != nil && $0.entityID != nil }
        if !late.isEmpty, let operations = try? await data.operations(sequences: late.map(\.sequence)) {
            state.note(operations.filter { reach?.contains($0.sequence, by: $0.viewer) ?? true }) {
                active.routes.plan(for: $0).entity?.action != nil
            }
        }
        // What the client was shown counts, whatever has been stored since: a refresh in the background, or another client's read.
        switch sight.ground(of: context.request.url, for: context.viewer, replacement: replacement) {
        case .shown(let seen):
            // A list that was read later has shown the item, too.
            if state.isListed, let listedAt = state.seenAt, listedAt > seen.includes ?? .last { break }
            if let condition = seen.condition, condition == state.etag { break }
            guard seen.condition != nil || seen.content != nil else { break }
            state = KnownState(
                body: seen.content, contentType: seen.contentType, etag: seen.condition,
                seenAt: seen.includes ?? state.seenAt ?? cache.ticks.next(),
                seen: seen.seen)
        case .written(let version?) where version != state.etag && view.resource.version == "etag":
            state = KnownState(etag: version, seenAt: state.seenAt ?? cache.ticks.next())
        case .written, .unknown: break
        }
        return state
    }

    /// Returns the cached representation of the request's target; nil when there is none or it is invalidated.
    func storedItem(for context: RequestContext) async -> CacheEntry? { await storedStates(for: context).copy }

    /// Returns the newest copy of the target that its client may have seen last, and when an own write with an unknown effect has changed
    /// the target.
    private func storedStates(for context: RequestContext) async -> (copy: CacheEntry?, changedAt: Tick?) {
        var read = context
        read.exchange.request.method = .get
        read.exchange.request = read.exchange.request.unconditional
        let entries = await reads.lookup.entries(for: read)
        let copy = entries.filter { $0.response.isKnownState }.max {
            $0.response.includesWritesUntil < $1.response.includesWritesUntil
        }
        return (copy, entries.compactMap { $0.response.isDirty ? $0.response.ownWrite?.at : nil }.max())
    }

    /// Returns the representation that the client had before this write; nil where it is unknown. The base is never guessed: a client that
    /// names another ETag than the copy's in `If-Match` has seen another representation.
    private func seen(in view: OverlayScope, state: KnownState, before operation: QueuedWriteDraft) async -> Conflict.Side? {
        guard var writes = try? await foldedWrites(in: view, includes: state.seenAt, within: operation.reach) else { return nil }
        // The state after an action is unknown to its client, who has seen the one before.
        writes.removeAll { $0.action != nil }
        // The write builds on the operation that its local ETag names, so later operations are not part of its base.
        if let named = operation.conditionedOn.max() { writes.removeAll { $0.sequence > named } }
        if operation.conditionedOn.isEmpty, let condition = operation.request.fields[.ifMatch] {
            guard let tag = state.etag.flatMap({ EntityTag($0) }), EntityTag.list(in: condition).contains(where: tag.names) else {
                return nil
            }
        }
        let mark = state.isListed ? Conflict.Side.listedMark : nil
        let own = state.body.map { Conflict.Side(body: $0, contentType: state.contentType, etag: state.etag ?? mark) }
        guard !writes.isEmpty else { return own }
        let value = state.body.flatMap { try? JSONValue.parse($0) }
        switch ItemFold.fold(value, with: writes, resource: view.resource) {
        case .present(let shown, _, _):
            let body = shown.serialized()
            return body.count <= OutboundWrites.baseLimit ? Conflict.Side(body: body, contentType: "application/json", etag: mark) : nil
        // Actions change nothing that is known: the client has seen the state before them.
        case .unchanged: return own
        case .deleted, .dirty: return nil
        }
    }

    // MARK: - Conditions

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

    // MARK: - The media type of representations that are made here (docs/outbox.md#media-types; RFC 9110 §8.3)

    /// Returns the media type of the representations of a declared resource, as the client's copies have it: that of the item, else of another item
    /// or of a list of its collection. Where no copy shows one, that of the resource's profile, or `application/json`.
    func mediaType(for context: RequestContext) async -> String {
        var types: [String?] = [await storedItem(for: context)?.response.head.fields[.contentType]]
        let readable = StoragePartition.readable(by: context.identity.partition)
        if let path = context.plan.entity?.collection {
            for url in [path, path + "/"].map({ context.request.origin.url + $0 }) {
                let copies = (try? await cache.copies(ofPath: url, in: readable, limit: 4)) ?? []
                types += copies.filter { $0.response.head.status == 200 }.map { $0.response.head.fields[.contentType] }
            }
        }
        let known = types.compactMap(\.self).first { MediaType.isJSON([.contentType: $0]) }
        return known ?? context.plan.entity?.resource?.profile?.mediaType ?? "application/json"
    }
}

extension StoredResponse {
    /// True if the copy says that the upstream has nothing under the URL any more, because a write through this proxy has removed it.
    fileprivate var isOwnAbsence: Bool { [404, 410].contains(head.status) && ownWrite?.isIncluded == true }
}
