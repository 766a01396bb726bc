// Read-your-writes: folds writes that the last known server state lacks into the representation at every read (docs/outbox.md#reads). The
// result is never stored in the cache.
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

/// Reads that include the queued writes of their client.
package final class ReadYourWrites: Sendable {
    let cache: CacheStore
    let data: DataStore
    /// Writes that reads must still include.
    let overlay: WriteOverlay
    /// What clients were shown.
    let sight: ClientSight
    let reads: ReadPipeline
    let itemsBefore: ItemsBefore
    /// The last folded collections.
    let folded: FoldedReads
    /// The configuration in force.
    let active: ActiveConfiguration
    let now: @Sendable () -> Timestamp

    init(
        cache: CacheStore, data: DataStore, overlay: WriteOverlay, sight: ClientSight, reads: ReadPipeline,
        itemsBefore: ItemsBefore, folded: FoldedReads, active: ActiveConfiguration, now: @escaping @Sendable () -> Timestamp
    ) {
        self.cache = cache
        self.data = data
        self.overlay = overlay
        self.sight = sight
        self.reads = reads
        self.itemsBefore = itemsBefore
        self.folded = folded
        self.active = active
        self.now = now
    }
}

/// Selects the writes that a read must include.
struct OverlayScope: Sendable {
    let upstream: String
    let resource: Resource
    /// The collection's path, by names that stay the same when a local id is mapped.
    let collection: String
    /// Nil for the collection itself.
    let entityID: String?
    let principal: String?
    /// The path of the list, where several share the name; nil for an item.
    let list: String?
}

extension ReadYourWrites {
    /// The maximum size in bytes of a representation that writes are folded into; a larger one is served unchanged, marked as dirty.
    private static let foldLimit = Int.mib(8)

    /// Returns the view of a read that must include writes; nil when no write concerns it.
    func view(of context: RequestContext) -> OverlayScope? {
        guard context.request.method == .get || context.request.method == .head else { return nil }
        return place(of: context).flatMap { overlay.covers(upstream: $0.upstream, collection: $0.collection) ? $0 : nil }
    }

    /// Returns the view of a request for a declared resource; nil for any other request.
    func place(of context: RequestContext) -> OverlayScope? {
        guard let upstream = context.plan.upstream, let entity = context.plan.entity, let resource = entity.resource, entity.action == nil,
            context.bodyDigest == nil,
            case let (collection?, id) = entity.names({ self.data.localIDs.alias(upstream: upstream.name, collection: $0, id: $1) })
        else { return nil }
        return OverlayScope(
            upstream: upstream.name, resource: resource, collection: collection, entityID: id, principal: context.identity.principal,
            list: entity.isItem || !resource.isShallow ? nil : canonical(entity.path, of: upstream.name))
    }

    /// A path under names that a mapping does not change.
    private func canonical(_ path: String, of upstream: String) -> String {
        path.canonical { data.localIDs.alias(upstream: upstream, collection: $0, id: $1) }
    }

    /// Returns the reply to a request for what is below an item that its client has deleted; nil for any other request.
    func missing(below context: RequestContext) -> Problem? {
        guard let upstream = context.plan.upstream?.name, let name = context.plan.entity?.name else { return nil }
        let known = name.canonical { self.data.localIDs.alias(upstream: upstream, collection: $0, id: $1) }
        guard let item = overlay.deletions.item(above: known, upstream: upstream, principal: context.identity.principal) else { return nil }
        return Problem(.notFound, detail: "\(context.original.path) is below \(item), which was deleted; its upstream does not know yet")
    }

    /// Answers a read. Queued writes of the client about the same entity are merged into the response.
    func read(_ context: inout RequestContext) async -> Reply {
        var reply: Reply
        // Of a fleet's other nodes, nothing older than this is left out.
        await data.catchUp(ifOlderThan: .seconds(2), within: .milliseconds(250))
        if let problem = missing(below: context) {
            reply = Reply(problem, context.trace)
            reply.head.fields[.rockpoolState] = "pending-delete"
        } else if let view = view(of: context) {
            reply = await readFolded(in: view, for: &context)
            noteTrouble(of: view, in: &reply.head)
        } else if context.namesUnmapped, let empty = await emptyList(for: context) {
            reply = empty
        } else if context.namesUnmapped {
            reply = Reply(Problem(.notFound, detail: "\(context.original.path) names what its upstream has none of yet"), context.trace)
        } else if let file = await FileReads(ownWrites: self).read(&context) {
            reply = file
        } else {
            reply = FileReads(ownWrites: self).marked(await reads.readServerState(&context), for: context)
            if let (listed, trace) = await listedReply(insteadOf: &reply, context.trace, for: context) {
                (reply, context.trace) = (context.conditional(listed), trace)
            }
        }
        // The request named a local id: `Content-Location` gives the URL with the server's id (RFC 9110 §8.7).
        if context.original.target != context.request.target, reply.head.status == 200 {
            reply.head.fields[.contentLocation] = context.request.url
        }
        return reply
    }

    /// Returns the empty list below an item that is created but not sent yet; nil for any other read, and below what was given up.
    private func emptyList(for context: RequestContext) async -> Reply? {
        guard let view = place(of: context), view.entityID == nil else { return nil }
        for named in LocalIDScan.references(head: context.request, body: []) where (try? await data.isGivenUp(named.id)) != false {
            return nil
        }
        let type = await mediaType(for: context)
        let head = ResponseHead(status: 200, fields: [.contentType: type, .cacheControl: "no-store", .rockpoolState: "pending"])
        let body = await ByteBuffer(bytes: lists.empty(in: view, for: context).serialized())
        return context.conditional(Reply(head: head, body: .bytes(body), trace: context.trace))
    }

    func readFolded(in view: OverlayScope, for context: inout RequestContext) async -> Reply {
        var inner = context.unconditional
        var base = ServerState()
        let version = folded.version(commits: data.commits, notes: overlay.version)
        var kept: (key: FoldedReads.Key, base: FoldedReads.Base)?
        if context.namesUnmapped {
            base.value = view.entityID == nil ? await lists.empty(in: view, for: context) : nil
        } else {
            var reply = await reads.readServerState(&inner)
            if let listed = await listedReply(insteadOf: &reply, inner.trace, for: inner) { (reply, inner.trace) = listed }
            context.trace = inner.trace
            // A response with another status, such as 401 or 500, is served unchanged: queued writes do not alter it.
            let isItsOwn = context.trace.verdict != .failed
            if isItsOwn, ![200, 404, 410].contains(reply.head.status) { return context.conditional(reply) }
            let known = isItsOwn ? context.trace.includes : nil
            if isItsOwn, view.entityID == nil, reply.head.status == 200 {
                let under = (key: view.key(for: context), base: FoldedReads.Base(bytes: await bytes(of: &reply), includesUntil: known))
                if let again = folded.find(under.key, at: version, over: under.base) { return shown(again, over: reply, for: context) }
                kept = under
            }
            if isItsOwn, pendingWrites(in: view, includes: known).isEmpty { return context.conditional(reply) }
            base = await serverState(from: &reply, includes: known)
            base.reply = reply
            if isItsOwn, reply.head.status == 200, base.value == nil { return context.conditional(dirty(reply)) }
        }
        let includes = base.value == nil ? base.absentSince : context.trace.includes
        guard let writes = try? await foldedWrites(in: view, includes: includes) else {
            return base.reply == nil
                ? Reply(Problem(.busy, detail: "the outbox cannot be read, and with it what this client has written"), context.trace)
                : unfolded(base, for: context)
        }
        guard !writes.isEmpty else { return base.reply.map { context.conditional($0) } ?? unknown(for: context) }
        if view.entityID != nil {
            let outcome = ItemFold.fold(base.value, with: writes, resource: view.resource)
            if base.reply?.head.status != 200 { base.type = await mediaType(for: context) }
            var reply = item(outcome, in: view, base: base, writes: writes, for: context)
            if let state = EntityState.shown(by: writes) { reply.head.fields[.rockpoolSync] = state.rawValue }
            return reply
        }
        guard let value = base.value else { return unfolded(base, for: context) }
        let fold = CollectionFold.fold(value, query: view.key(for: context).query, with: writes, resource: view.resource)
        guard let last = fold.last else { return base.reply.map { context.conditional($0) } ?? unknown(for: context) }
        var representation = FoldedReads.Representation(fold.value, last: last, isDirty: fold.isDirty, writes: writes)
        representation.growth = fold.growth
        if let kept { folded.keep(representation, of: kept.key, at: version, over: kept.base) }
        if writes.count >= FreedMemory.manyWrites { FreedMemory.process.muchWasFreed() }
        let type = base.reply?.head.status == 200 ? nil : await mediaType(for: context)
        return shown(representation, over: base.reply, type: type, for: context)
    }

    /// Names in the reply to a read the write of the item that is dead, in conflict or uncertain, and where its status is.
    private func noteTrouble(of view: OverlayScope, in head: inout ResponseHead) {
        guard let id = view.entityID,
            let trouble = overlay.trouble(
                upstream: view.upstream, collection: view.collection, entityID: id, principal: view.principal)
        else { return }
        head.fields[.rockpoolState] = trouble.state.rawValue
        let status = QueuedWrite.statusPrefix + trouble.operation
        head.fields.append(HTTPField(name: .link, value: "<\(status)>; rel=\"rockpool-operation\""))
    }

    /// Returns the item as a read shows it now, from stored data alone; used for optimistic replies.
    func shownItem(in view: OverlayScope, for context: RequestContext) async -> (value: JSONValue?, isKnown: Bool) {
        let entry = await storedItem(for: context)
        var value: JSONValue?
        if let entry, let bytes = try? await reads.lookup.content(of: entry, limit: Self.foldLimit) { value = try? JSONValue.parse(bytes) }
        let listed = entry == nil ? await lists.item(in: view, for: context) : nil
        if let listed { value = view.resource.body(of: listed.element) }
        guard let writes = try? await foldedWrites(in: view, includes: entry?.response.includesWritesUntil ?? listed?.at) else {
            return (nil, true)
        }
        return switch ItemFold.fold(value, with: writes, resource: view.resource) {
        case .unchanged: (value, value != nil)
        case .present(let value, _, _): (value, true)
        case .deleted: (nil, false)
        case .dirty: (nil, true)
        }
    }

    // MARK: - The server's state

    /// The last known state of the server.
    private struct ServerState {
        var value: JSONValue?
        /// The unchanged reply, served when no write is folded in.
        var reply: Reply?
        /// When the request was sent that the server answered with 404 or 410; nil without such a response.
        var absentSince: Tick?
        /// The media type of a representation that is made here; nil for that of the reply.
        var type: String?
    }

    private func serverState(from reply: inout Reply, includes: Tick?) async -> ServerState {
        var state = ServerState()
        let isFromUpstream = includes != nil
        if isFromUpstream, reply.head.status == 404 || reply.head.status == 410 { state.absentSince = includes }
        guard reply.isWholeJSON else { return state }
        guard let bytes = await bytes(of: &reply)?.decoded(of: reply.head, upTo: Self.foldLimit) else { return state }
        state.value = try? JSONValue.parse(Array(bytes.readableBytesView))
        return state
    }

    /// Reads the body into memory; the reply keeps it in that form.
    func bytes(of reply: inout Reply) async -> ByteBuffer? {
        switch reply.body {
        case .none: return nil
        case .bytes(let bytes): return bytes
        case .file(let path, let offset, let length, let lease):
            guard length <= Self.foldLimit, let lease = lease as? BodyLease,
                let bytes = try? await cache.read(0..<length, of: .file(path: path, offset: offset, length: length, lease: lease))
            else { return nil }
            reply.body = .bytes(bytes)
            return bytes
        case .stream(let source, let length):
            guard length ?? 0 <= Self.foldLimit else { return nil }
            var bytes = ByteBuffer()
            do throws(TransferFailure) {
                while var chunk = try await source.next() {
                    bytes.writeBuffer(&chunk)
                    guard bytes.readableBytes <= Self.foldLimit else {
                        reply.body = .stream(BodyPipe(bytes, then: source), length: length)
                        return nil
                    }
                }
            } catch {
                reply.body = .stream(BodyPipe(bytes, then: BodyPipe(broken: error)), length: length)
                return nil
            }
            reply.body = .bytes(bytes)
            return bytes
        }
    }

    private func pendingWrites(in view: OverlayScope, includes: Tick?) -> [WriteOverlay.Write] {
        overlay.writes(
            upstream: view.upstream, collection: view.collection, entityID: view.entityID, principal: view.principal, includes: includes)
    }

    /// Marks a reply with an unreadable body (of an unknown coding, too large, not JSON). The reply is served without the writes.
    private func dirty(_ reply: Reply) -> Reply {
        var reply = reply
        reply.head.fields[.rockpoolDirty] = "1"
        reply.head.fields[.eTag] = nil
        return reply
    }

    /// Returns the writes that a copy lacks, as they are folded into it.
    /// - Parameters:
    ///   - includes: writes that have ended by then are part of the copy; nil without a copy.
    ///   - reach: the writes that count; nil for all.
    /// - Throws: if the outbox cannot be read: then nothing is known of them.
    func foldedWrites(in view: OverlayScope, includes: Tick?, within reach: Reach? = nil) async throws -> [FoldedWrite] {
        let writes = pendingWrites(in: view, includes: includes)
        guard !writes.isEmpty else { return [] }
        let operations = try await data.operations(sequences: writes.map(\.sequence))
        // A create has the content of the writes that were squashed into it, so its tag is that of the last of them.
        let maySquash = active.routes.upstream(named: view.upstream)?.queue.squash == .safe
        let squashed = maySquash ? (try? await data.lastSquashed(into: operations.filter(\.isCreate))) ?? [:] : [:]
        var folded: [FoldedWrite] = []
        for operation in operations where ![.dead, .cancelled, .superseded].contains(operation.state) {
            guard reach?.contains(operation.sequence, by: operation.viewer) ?? true else { continue }
            let entity = active.routes.plan(for: operation.request).entity
            // A create in another list of the same name.
            if let list = view.list, let entity, !entity.isItem, canonical(entity.path, of: view.upstream) != list { continue }
            var write = FoldedWrite(operation, action: entity?.action, in: data)
            write.sequence = squashed[operation.sequence] ?? write.sequence
            // A delivery is in the overlay as an open write until the copies show its effect.
            if let includes, let moment = write.isDelivered ? operation.ended : operation.begun, includes >= moment {
                write.mayBeShown = true
                if !write.isDelivered, operation.isCreate {
                    write.idsBefore = await itemsBefore.ids(for: operation, as: operation.request)
                }
            }
            folded.append(write)
        }
        return folded
    }

    // MARK: - The reply

    private func item(
        _ outcome: ItemFold.Outcome, in view: OverlayScope, base: ServerState, writes: [FoldedWrite], for context: RequestContext
    ) -> Reply {
        let versioned = { (value: JSONValue, last: Int64) in
            guard writes.contains(where: { !$0.isDelivered }) else { return value }
            return LocalVersions(view.resource).shown(value, after: last, etag: base.reply?.representationTag)
        }
        switch outcome {
        case .unchanged: return base.reply.map { context.conditional($0) } ?? unknown(for: context)
        case .present(let value, let last, _):
            let representation = FoldedReads.Representation(versioned(value, last), last: last, isDirty: false, writes: writes)
            return shown(representation, over: base.reply, type: base.type, for: context)
        case .dirty(let value, let last, _):
            guard let value = value ?? base.value else { return unfolded(base, for: context) }
            let representation = FoldedReads.Representation(value, last: last, isDirty: true, writes: writes)
            return shown(representation, over: base.reply, type: base.type, for: context)
        case .deleted:
            var reply = Reply(
                Problem(.notFound, detail: "\(context.original.path) was deleted; its upstream does not know yet"), context.trace)
            reply.head.fields[.rockpoolState] = "pending-delete"
            return reply
        }
    }

    private func shown(
        _ representation: FoldedReads.Representation, over base: Reply?, type: String? = nil, for context: RequestContext
    ) -> Reply {
        var head = base.flatMap { $0.head.status == 200 ? $0.head : nil } ?? ResponseHead(status: 200)
        let etag = base?.representationTag
        head.fields = head.fields.ofComputedBody
        head.fields[.contentType] = head.fields[.contentType] ?? type ?? "application/json"
        head.fields.countItems(representation.growth)
        head.fields[.eTag] = LocalETag(sequence: representation.last, base: etag).fieldValue
        if representation.openCount > 0 {
            head.fields[.rockpoolState] = "pending"
            head.fields[.rockpoolPending] = String(representation.openCount)
            (head.fields[.cacheControl], head.fields[.age]) = ("no-store", nil)
        }
        if representation.isDirty { head.fields[.rockpoolDirty] = "1" }
        return context.conditional(Reply(head: head, body: .bytes(representation.body), trace: context.trace))
    }

    /// Returns the server's reply, marked as dirty, because the writes cannot be folded into it.
    private func unfolded(_ base: ServerState, for context: RequestContext) -> Reply {
        guard var reply = base.reply else { return unknown(for: context) }
        if reply.head.status == 200 { reply.head.fields[.rockpoolDirty] = "1" }
        return context.conditional(reply)
    }

    private func unknown(for context: RequestContext) -> Reply {
        Reply(Problem(.notFound, detail: "\(context.original.path) is not known here, and its upstream has none of it yet"), context.trace)
    }
}

extension RequestContext {
    /// The same read, as an unconditional GET of the whole representation.
    fileprivate var unconditional: RequestContext {
        var context = self
        context.exchange.request = request.unconditional
        if request.method == .head { context.exchange.request.method = .get }
        return context
    }

    /// Applies the client's conditions and method to the reply.
    func conditional(_ reply: Reply) -> Reply {
        var reply = reply
        if reply.head.status == 200, case .notModified(let notModified) = Preconditions.evaluate(request: request, stored: reply.head) {
            reply.head = notModified
            reply.body = .none(length: nil)
        } else if request.method == .head {
            reply.body = .none(length: reply.body.dropped())
        }
        return reply
    }

    /// Applies the client's conditions and method to a representation with a write that its upstream may not have. Of its dates none tells
    /// whether the client has seen the write: they have whole seconds, of two clocks.
    func conditionalByTag(_ reply: Reply) -> Reply {
        var context = self
        context.exchange.request.fields[.ifModifiedSince] = nil
        return context.conditional(reply)
    }
}

extension Reply {
    /// True if its body can be folded.
    fileprivate var isWholeJSON: Bool {
        head.status == 200 && MediaType.isJSON(head.fields)
            && (!head.fields.contains(.contentEncoding) || ContentCoding.canBeDecoded(head))
    }

    /// The tag of a representation that can be folded; nil without one.
    fileprivate var representationTag: EntityTag? { isWholeJSON ? head.fields[.eTag].flatMap { EntityTag($0) } : nil }
}

extension OverlayScope {
    /// The read of the collection by its client.
    fileprivate func key(for context: RequestContext) -> FoldedReads.Key {
        let query = context.request.target.split(separator: "?", maxSplits: 1).dropFirst().first.map { String($0) }
        return FoldedReads.Key(upstream: upstream, collection: list ?? collection, principal: principal, query: query)
    }
}

extension ReplyBody {
    /// Discards the body. Returns its length, nil where it is unknown.
    fileprivate func dropped() -> Int64? {
        switch self {
        case .none(let length): return length
        case .bytes(let bytes): return Int64(bytes.readableBytes)
        case .file(_, _, let length, _): return length
        case .stream(let source, let length):
            source.abandon()
            return length
        }
    }
}
