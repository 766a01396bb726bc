// What a write that waits is to its client: refused where the state that the client reads contradicts it, or answered in the upstream's
// place.
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

/// The reply that stands in for the upstream's, with `offline_response: optimistic` (docs/outbox.md#optimistic-replies).
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
        if let id = operation.newItem {
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

// MARK: - Files that are not there

/// What a write to files needs and is not there, as its client knows (docs/outbox.md#files-and-collections).
extension WritePipeline {
    /// Finds writes to files that wait in vain, because what they need is not there.
    struct Lack: Sendable {
        let files: FileOverlay
        let cache: CacheStore
        let lookup: EntryLookup
        let now: Timestamp

        /// Returns the refusal of a MOVE or a COPY of a tree into itself (403, RFC 4918 §9.8.5) or without a source (404), and of a MKCOL without
        /// a parent (409, RFC 4918 §9.3.1); nil if what the write needs may be there.
        func problem(of operation: QueuedWriteDraft, context: RequestContext) async -> Problem? {
            guard operation.collection == nil, let write = FileWrite(context.request), let upstream = context.plan.upstream?.name else {
                return nil
            }
            if FileWrite.isIntoItself(context.request) {
                return Problem(.forbiddenTarget, detail: "\(write.path.target) cannot be moved or copied to its own place or into itself")
            }
            let principal = context.identity.principal
            if files.lacksSource(of: write, upstream: upstream, principal: principal, now: now) {
                return Problem(.notFound, detail: "\(write.path.target) is not there")
            }
            guard write.effect == .collection, let parent = write.path.parent else { return nil }
            let isMissing =
                if let gap = files.gap(above: write, upstream: upstream, principal: principal, now: now) {
                    await !isStored(from: parent, to: gap, for: context)
                } else {
                    await isUnlisted(parent, upstream: upstream, for: context)
                }
            return isMissing ? Problem(.conflict, detail: "the collection \(parent.target) is not there; make it first") : nil
        }

        /// True if the newest stored listing of a collection above a path lacks the member that leads to the path, and the client has made
        /// nothing there since.
        private func isUnlisted(_ path: FilePath, upstream: String, for context: RequestContext) async -> Bool {
            var member = path
            while let collection = member.parent {
                if let listing = await listing(of: collection, upstream: upstream, for: context) {
                    guard !listing.members.contains(member) else { return false }
                    let since = files.fold(
                        upstream: upstream, principal: context.identity.principal, deliveredSince: listing.entry.response.asked)
                    return [member, path].allSatisfy { since.state(of: $0) == .server($0, by: nil) }
                }
                member = collection
            }
            return false
        }

        /// The newest stored PROPFIND of a collection that shows members; or the newest one, if it is known that clients list this collection:
        /// otherwise it may be about the collection alone (`Depth: 0`).
        private func listing(
            of collection: FilePath, upstream: String, for context: RequestContext
        ) async -> (entry: CacheEntry, members: [FilePath])? {
            var empty: CacheEntry?
            let readable = StoragePartition.readable(by: context.identity.partition)
            for target in collection.targets {
                let copies = (try? await cache.copies(ofPath: context.request.origin.url + target, in: readable, limit: 8)) ?? []
                for copy in copies where copy.key.method == "PROPFIND" && copy.response.head.status == 207 {
                    guard let bytes = try? await lookup.content(of: copy, limit: Int.mib(1)), let document = Multistatus(bytes) else {
                        continue
                    }
                    let members = document.responses.map(\.path).filter { $0.parent == collection }
                    if !members.isEmpty { return (copy, members) }
                    empty = empty ?? copy
                }
            }
            return files.isListed(collection, at: upstream) ? empty.map { ($0, []) } : nil
        }

        /// True if the cache shows that there was something at a path, or at a collection above it up to `top`.
        private func isStored(from path: FilePath, to top: FilePath, for context: RequestContext) async -> Bool {
            let readable = StoragePartition.readable(by: context.identity.partition)
            var path: FilePath? = path
            while let place = path, top.contains(place) {
                for url in place.targets.map({ context.request.origin.url + $0 }) {
                    let copies = (try? await cache.copies(ofPath: url, in: readable, limit: 4)) ?? []
                    if copies.contains(where: { (200...299).contains($0.response.head.status) }) { return true }
                }
                path = place.parent
            }
            return false
        }
    }
}
