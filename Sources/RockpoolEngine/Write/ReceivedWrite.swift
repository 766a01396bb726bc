// A write before it is sent or queued: its entity and lane, its dependencies, its local ids and ETags (docs/outbox.md#lanes,
// docs/outbox.md#local-ids).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

/// A write that is either sent now or queued: the operation it would become, and the request as it would be sent live.
struct ReceivedWrite: Sendable {
    var operation: QueuedWriteDraft
    var head: RequestHead
    var body: OutboundRequest.Body
    /// True if the request refers to the result of an open operation, so it cannot be sent before that operation.
    var mustWait: Bool
    /// The `If-Match` that Rockpool adds to the live request; nil for none.
    var condition: String?
    /// The record of its live attempt, from before it is sent; nil where there is none.
    var trace: LiveWriteTrace?
}

extension QueuedWriteDraft {
    /// The whole representation that a PUT puts at its target; nil for any other write, and where it is no JSON.
    var replacement: JSONValue? {
        guard request.method == .put, case .inline(let bytes) = body, MediaType.isJSON(request.fields) else { return nil }
        return try? JSONValue.parse(bytes)
    }

    /// True if the write sets or removes the whole entity, whatever its state was.
    fileprivate var replacesEntity: Bool {
        guard action == nil, entity != nil, collection == nil || entityID != nil else { return false }
        return request.method == .delete || request.method == .put && !request.fields.contains(.contentRange)
    }

    /// True for an operation without a reference to any other.
    fileprivate var isPlain: Bool {
        dependsOn.isEmpty && conditionedOn.isEmpty && references.isEmpty && group == nil && newItem == nil
            && collection == nil && !takesBase
    }
}

// MARK: - From a request to an operation

extension WritePipeline {
    /// - Throws: `FileError` when a spooled body cannot be read, `DataStoreError`.
    func draft(_ context: RequestContext, body: Spool.Whole, upstream: Upstream) async throws -> ReceivedWrite {
        var request = context.original
        request.fields[.expect] = nil
        let clientKey = request.clientKey(for: upstream.idempotency)
        var bare = request
        bare.fields = context.identity.withoutSecrets(request.fields)
        // `Referer` is not part of the write, and a page's address may contain a token.
        bare.fields[.referer] = nil
        bare.fields[.te] = nil
        // Kept with the write, and removed again before it is sent.
        bare.fields[.rockpoolCallback] = context.wishes.callback
        bare.fields[.rockpoolCredential] = nil
        // Clients without a credential are told apart by it.
        let address = context.identity.principal == nil ? context.exchange.clientAddress : ""
        bare.fields[.rockpoolClient] = address.isEmpty ? nil : address
        let (placement, id) = (await placement(of: context, body: body, upstream: upstream), UUIDv7.make(at: now()))
        var operation = QueuedWriteDraft(
            id: id, request: bare, body: body.stored, upstream: upstream.name, entity: placement.entity, lane: placement.lane,
            idempotencyKey: clientKey ?? UUIDv7.make(at: now()), keyIsClients: clientKey != nil, principal: context.identity.principal,
            priority: context.wishes.priority, expiresAt: context.expiry)
        operation.collection = placement.collection
        operation.entityID = placement.entityID
        operation.newItem = placement.newItem
        operation.dependsOn = context.wishes.dependsOn
        if operation.collection == nil, let write = FileWrite(request) {
            operation.dependsOn += notifier.overlay.files.prerequisites(
                of: write, upstream: upstream.name, principal: operation.principal)
        }
        operation.viewer = context.viewer.program
        operation.group = context.wishes.group
        operation.noMerge = context.wishes.noMerge
        operation.maySquash = upstream.queue.squash == .safe
        operation.action = context.plan.entity?.action
        operation.mayRepeat =
            request.method == .post && clientKey == nil && upstream.queue.repeats == .same && !context.wishes.respondsAsync
            && (operation.principal != nil || bare.fields.contains(.rockpoolClient))
        if context.plan.isTelemetry, let route = context.plan.route { queueApart(&operation, route: route) }
        try await supersedeDead(before: operation)
        try await follow(&operation, in: context)
        let versions = try context.plan.entity?.resource.map { try localVersions(in: body, of: $0) } ?? []
        operation.conditionedOn = try await ownSequences(operation.request.fields.localETags + versions, of: operation)
        operation.mayAddressNewItem = await ownWrites.mayAddressNewItem(context)
        operation.takesBase = operation.action == nil && bare.buildsOnState && ownWrites.knowsState(of: context)
        var draft = ReceivedWrite(operation: operation, head: request, body: body.outbound, mustWait: false)
        try await replaceLocalIDs(in: &draft, body: body)
        try await replaceLocalETags(in: &draft, body: body, resource: context.plan.entity?.resource)
        let (ids, group, principal) = (operation.dependsOn, operation.group, operation.principal)
        if try await data.isAnythingOpen(ids: ids, group: group, upstream: upstream.name, principal: principal) { draft.mustWait = true }
        if try await data.isCollectionOpen(for: operation) { draft.mustWait = true }
        return draft
    }

    /// Makes a write one of its route's telemetry: in a lane of its own, for as long as the route keeps it.
    private func queueApart(_ operation: inout QueuedWriteDraft, route: Route) {
        guard let settings = route.telemetry else { return }
        let moment = now()
        let number = telemetryNumbers.next(at: moment)
        operation.lane = Lane.telemetry(upstream: operation.upstream, route: route.match, number: number)
        operation.expiresAt = min(moment + settings.keep, operation.expiresAt ?? .distantFuture)
        operation.queueLimit = settings.limit
        operation.maySquash = false
    }

    /// Ends the dead writes of an item that a complete new state of the same client replaces.
    private func supersedeDead(before new: QueuedWriteDraft) async throws {
        guard new.replacesEntity else { return }
        for operation in try await data.deadWrites(replacedBy: new) {
            notifier.tell(try await data.transition(id: operation, to: .superseded, reason: .squashed, from: [.dead], now: now()))
        }
    }

    private func placement(of context: RequestContext, body: Spool.Whole, upstream: Upstream) async -> Placement {
        let alias = { self.data.localIDs.alias(upstream: upstream.name, collection: $0, id: $1) }
        let newItem: NewItemID
        if let key = await chosenKey(of: context, body: body, upstream: upstream) {
            newItem = .chosen(key)
        } else {
            let isNumber = await makesNumber(context, collection: context.plan.entity?.names(alias).collection, upstream: upstream)
            newItem = .local(data.localIDs.mint(isNumber: isNumber, now: now()))
        }
        return Placement(
            context.plan.entity, method: context.request.method, upstream: upstream.name,
            order: context.plan.route?.order ?? RouteOrder(upstream.order), principal: context.identity.principal,
            path: context.request.path, sender: context.identity.principal ?? "@\(context.exchange.clientAddress)",
            newItem: newItem, alias: alias)
    }

    /// The key that a create gives its item, at an API whose answers have shown that it keeps such keys; nil otherwise.
    private func chosenKey(of context: RequestContext, body: Spool.Whole, upstream: Upstream) async -> String? {
        guard context.request.method == .post, let entity = context.plan.entity, !entity.isItem, let resource = entity.resource,
            case .inline(let bytes) = body.stored,
            await notifier.replies.form(for: WriteRoute(of: context.request, plan: context.plan), at: upstream.name)?.keepsKeys == true
        else { return nil }
        return (try? JSONValue.parse(bytes)).flatMap { resource.key(in: $0) }
    }

    /// True for a create in a collection whose ids are numbers, as far as that is known: by answers and copies, or else by earlier creates.
    private func makesNumber(_ context: RequestContext, collection: String?, upstream: Upstream) async -> Bool {
        guard context.request.method == .post, let entity = context.plan.entity, !entity.isItem, let resource = entity.resource else {
            return false
        }
        let known = await reads.lookup.idsAreNumbers(at: context.request, resource: resource, partition: context.identity.partition)
        return known ?? collection.map { data.localIDs.hasNumbers(upstream: upstream.name, collection: $0) } ?? false
    }

    /// Replaces local ids in the live request if all of them are mapped; the operation keeps its local ids until it is sent. Otherwise the
    /// write must wait for the operations that create the ids.
    private func replaceLocalIDs(in draft: inout ReceivedWrite, body: Spool.Whole) async throws {
        guard !data.localIDs.isEmpty || data.isOfFleet else { return }
        let bytes = try data.content(of: body.stored).bytes()
        guard LocalIDScan.mayOccur(head: draft.head, body: bytes) else { return }
        await data.learn(LocalIDScan.references(head: draft.head, body: bytes).map(\.id))
        do {
            let (head, replaced) = try data.localIDs.substituted(draft.head, bytes)
            draft.head = head
            if replaced != bytes { draft.body = .bytes(ByteBuffer(bytes: replaced)) }
        } catch {
            draft.mustWait = true
            draft.operation.references = LocalIDScan.references(head: draft.operation.request, body: bytes)
                .filter { data.localIDs.knows($0.id) && data.localIDs.mapping(of: $0.id) == nil }
        }
    }

    /// A client that writes twice under one condition means, the second time, the state that its first write makes: as long as that waits, its
    /// tag stands for it. Where replies are made here, the reply to the first write has named a new strong tag.
    private func follow(_ operation: inout QueuedWriteDraft, in context: RequestContext) async throws {
        let tags = EntityTag.list(in: operation.request.fields[.ifMatch] ?? "")
        let isToldOfTags = context.plan.entity?.resource?.offlineResponse == .optimistic
        guard tags.contains(where: { LocalETag($0) == nil && (!isToldOfTags || $0.isWeak) }),
            let earlier = try await data.lastOpenChange(before: operation)
        else { return }
        let known =
            EntityTag.list(in: earlier.request.fields[.ifMatch] ?? "") + [earlier.baseETag].compactMap { $0.flatMap { EntityTag($0) } }
        guard known.contains(where: { tags.contains(LocalETag($0)?.base ?? $0) }) else { return }
        operation.request.fields[.ifMatch] = tags.map { tag in
            LocalETag(tag) == nil ? LocalETag(sequence: earlier.sequence, base: tag).fieldValue : tag.fieldValue
        }.joined(separator: ", ")
    }

    /// Returns the local versions that a body of a declared resource names.
    private func localVersions(in body: Spool.Whole, of resource: Resource) throws -> [LocalETag] {
        guard case .inline(let bytes) = body.stored else { return [] }
        return LocalVersions(resource).tags(in: bytes)
    }

    /// Returns the sequences of local tags that name operations of this entity and this principal. Every other local tag is passed on
    /// unchanged and matches nothing.
    private func ownSequences(_ tags: [LocalETag], of new: QueuedWriteDraft) async throws -> [Int64] {
        guard !tags.isEmpty else { return [] }
        return try await data.operations(sequences: tags.map(\.sequence))
            .filter { $0.upstream == new.upstream && $0.entity == new.entity && $0.principal == new.principal }.map(\.sequence)
    }

    /// Replaces local tags in the live request by the ETag that the earlier operation received, or by the base tag they contain. The write
    /// must wait while such an operation is open.
    private func replaceLocalETags(in draft: inout ReceivedWrite, body: Spool.Whole, resource: Resource?) async throws {
        guard !draft.operation.conditionedOn.isEmpty else { return }
        var real: [Int64: EntityTag] = [:]
        for sequence in draft.operation.conditionedOn {
            let earlier = try await data.operations(sequences: [sequence]).first
            if let earlier, !earlier.state.hasEnded { draft.mustWait = true }
            // A merge has put there what the client has not seen.
            if try await data.isMerged(sequence) { throw MergedSince() }
            real[sequence] = try await data.etag(of: sequence).flatMap { EntityTag($0) }
            // Its answer named no version: replay reads the entity just before the write.
            if real[sequence] == nil, earlier?.state == .delivered { draft.mustWait = true }
        }
        draft.head.fields = draft.head.fields.replacingLocalETags { real[$0.sequence] ?? $0.base }
        guard let resource, case .inline(let bytes) = body.stored else { return }
        let outbound = draft.body.inMemory ?? bytes
        let replaced = LocalVersions(resource).replaced(in: outbound) { [real] in (real[$0.sequence] ?? $0.base).map { String($0.bare) } }
        guard replaced != outbound else { return }
        draft.body = .bytes(ByteBuffer(bytes: replaced))
        draft.head.fields = draft.head.fields.ofReplacedBody
    }
}

/// Thrown for a write whose condition names a state that was merged with another client's change.
struct MergedSince: Error {}

// MARK: - Examples for the next writes

/// Which live writes are examples for the next ones (docs/architecture.md#relays).
extension ReceivedWrite {
    /// The write as an example; nil if the next one of the same form might need more than what this one needed.
    func passed(as request: OutboundRequest?, in context: RequestContext, to upstream: Upstream) -> PassedWrite? {
        guard let request, !mustWait, condition == nil, operation.isPlain, context.plan.entity?.resource == nil,
            context.plan.success == nil, context.plan.route?.kind != .graphql, !operation.isTelemetry, upstream.refresh == nil,
            !upstream.hasExpectation,
            context.wishes == WritePreferences(), context.expiry == nil, context.identity.signature.isEmpty, !context.identity.isFormer,
            !context.namesUnmapped
        else { return nil }
        return PassedWrite(
            request: request, received: context.request, plan: context.plan, identity: context.identity, upstream: upstream,
            operation: operation, head: head)
    }
}
