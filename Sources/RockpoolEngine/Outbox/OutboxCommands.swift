// What a person can do with the outbox: retry, edit, cancel, resolve, undo, push.
import HTTPTypes
import NIOCore
package import RockpoolCore
package import RockpoolStore

/// Commands of a person on operations and conflicts.
package final class OutboxCommands: Sendable {
    let data: DataStore
    let cache: CacheStore
    let reachability: ReachabilityTable
    let events: EngineEvents
    let outbound: OutboundWrites
    let reads: ReadPipeline
    /// Works a write into the copies of a principal.
    let workIn: @Sendable (AnsweredWrite, _ principal: String?) async -> Void
    let notifier: OutboxNotifier
    /// The configuration in force.
    let active: ActiveConfiguration
    let now: @Sendable () -> Timestamp

    init(
        data: DataStore, cache: CacheStore, reachability: ReachabilityTable, events: EngineEvents, outbound: OutboundWrites,
        reads: ReadPipeline, notifier: OutboxNotifier, active: ActiveConfiguration, now: @escaping @Sendable () -> Timestamp,
        workIn: @escaping @Sendable (AnsweredWrite, _ principal: String?) async -> Void
    ) {
        self.data = data
        self.cache = cache
        self.reachability = reachability
        self.events = events
        self.outbound = outbound
        self.reads = reads
        self.notifier = notifier
        self.active = active
        self.now = now
        self.workIn = workIn
    }
}

// MARK: - Steering

/// Runs the store's transactions, words the refusals and publishes the changes (docs/outbox.md#steering *user*).
extension OutboxCommands {
    /// Retries, cancels or discards one operation.
    /// - Parameters:
    ///   - withTree: true to give up the operations that need it as well; otherwise the command is refused if there are any.
    ///   - anyway: true to retry also what `Retry-After` holds back; otherwise it keeps its time, and the warning names it.
    /// - Returns: nil when no operation has this id.
    /// - Throws: a `Problem` 409 with the reason and the `dependants` that prevent it; `DataStoreError`.
    package func steer(
        _ steering: OperationSteering, id: String, withTree: Bool = false, anyway: Bool = false
    ) async throws -> OutboxCommandResult? {
        guard let operation = try await data.operation(id: id) else { return nil }
        var (state, reason, warning) = try await allowed(steering, on: operation)
        if steering == .retry, let moment = hold(on: operation, anyway: anyway) {
            warning = "its upstream demands to wait until \(RFC3339.format(moment)); it is sent then"
            if operation.waitsForRetryAfter(now: now()) { return OutboxCommandResult(operation: operation, warning: warning) }
        }
        return try await problems { [state, reason, warning] in
            var moved: [QueuedWrite]
            if state == .cancelled, let reason {
                moved = try await data.giveUp(id: id, reason: reason, from: steering.allowedFrom, withTree: withTree, now: now())
            } else {
                moved = [try await data.retry(id: id, from: steering.allowedFrom, now: now())]
            }
            for operation in moved { notifier.tell(operation) }
            if steering == .retry { moved.forEach(notifier.urge) }
            return OutboxCommandResult(operation: moved[0], warning: warning)
        }
    }

    /// Retries what a selection names, except uncertain operations, which need a decision each. Pauses after mass refusals end.
    /// - Parameter anyway: true to retry also what `Retry-After` holds back.
    package func retry(
        _ selection: RetrySelection, anyway: Bool = false
    ) async throws -> (retried: [String], uncertain: [String], held: [RetryHold]) {
        let moment = now()
        let waiting = try await data.openOperations().filter { operation in
            operation.state == .pending && selection.isWholeLane && operation.lane == selection.lane
                && selection.upstream.map { $0 == operation.upstream } ?? true
        }
        if anyway { for name in Set(waiting.map(\.upstream)) { notifier.resume(name) } }
        let kept = anyway ? [] : waiting.filter { $0.waitsForRetryAfter(now: moment) }
        let result = try await data.retry(selection, except: Set(kept.map(\.sequence)), now: moment)
        var upstreams: Set<String> = []
        for id in result.retried {
            guard let operation = try await data.operation(id: id) else { continue }
            notifier.tell(operation)
            upstreams.insert(operation.upstream)
        }
        upstreams.forEach(notifier.overrule)
        let pauses = notifier.pauses.current(now: moment)
        return (result.retried, result.uncertain, anyway ? [] : RetryHold.among(waiting, pauses: pauses, now: moment))
    }

    /// Ends an operation and puts an edited one with a new key in its place.
    /// - Returns: nil when no operation has this id.
    /// - Throws: a `Problem` 409 or 422 with the reason; `DataStoreError`.
    package func edit(id: String, edit: OperationEdit) async throws -> OutboxCommandResult? {
        guard let operation = try await data.operation(id: id) else { return nil }
        let (_, _, warning) = try await allowed(.edit, on: operation)
        guard !edit.isEmpty else { throw Problem(.unprocessable, detail: "the edit changes nothing") }
        guard let upstream = active.routes.upstream(named: operation.upstream) else {
            throw Problem(.unprocessable, detail: "its upstream \(operation.upstream) is not declared any more")
        }
        var (request, bytes): (RequestHead, [UInt8]?)
        do { (request, bytes) = try edit.applied(to: operation.request) } catch { throw Problem(error) }
        let owner = upstream.isDeclared ? active.routes.upstream(for: request.origin, target: request.target) : upstream
        guard request.origin == upstream.origin, request.url == operation.request.url || owner?.name == upstream.name else {
            throw Problem(
                .unprocessable,
                detail: "\(request.origin.url)\(request.path) is not the upstream \(upstream.name) (\(upstream.place)) it was meant for")
        }
        // The client's key belongs to the old payload, at the upstream and at our listener (docs/outbox.md#keys).
        request.fields[upstream.idempotency.name] = nil
        let entity = request.url == operation.request.url ? operation.entity : active.routes.plan(for: request).entity?.path
        return try await problems {
            let new = QueuedWriteDraft(
                id: UUIDv7.make(at: now()), request: request,
                body: try await stored(bytes, else: operation.body, for: upstream), upstream: upstream.name, entity: entity,
                lane: operation.lane, idempotencyKey: UUIDv7.make(at: now()),
                principal: operation.principal, priority: operation.priority, expiresAt: operation.expiresAt)
            do {
                let edited = try await data.replace(id: id, by: new, from: OperationSteering.edit.allowedFrom, now: now())
                // Publish the new operation and its dependants first, so that the end of the old one does not release the dependants.
                let waiting = try await data.dependants(of: edited).map(\.id)
                for changed in [edited.id] + waiting + [id] {
                    if let operation = try await data.operation(id: changed) { notifier.tell(operation) }
                }
                return OutboxCommandResult(operation: edited, warning: warning)
            } catch {
                if bytes != nil { data.discard(new.body) }
                throw error
            }
        }
    }

    /// Makes the counted repeats of a write writes of their own, at the end of its lane (docs/outbox.md#repeats).
    /// - Returns: the new operations; nil when no operation has this id.
    /// - Throws: a `Problem` 409 if no repeat is counted, 422 if its upstream is not declared any more; `DataStoreError`.
    package func separateRepeats(of id: String) async throws -> [QueuedWrite]? {
        guard let operation = try await data.operation(id: id) else { return nil }
        guard operation.repeats > 0 else { throw Problem(.conflict, detail: "no repeats are counted on it") }
        guard let upstream = active.routes.upstream(named: operation.upstream) else {
            throw Problem(.unprocessable, detail: "its upstream \(operation.upstream) is not declared any more")
        }
        return try await problems {
            var made: [QueuedWrite] = []
            while let new = try await data.separate(copy(of: operation, at: upstream), from: id) {
                notifier.tell(new)
                made.append(new)
            }
            events.tell(.operation(id: id, state: operation.state, isNews: false))
            return made
        }
    }

    /// The same write with an id, a key and, for a create, a local id of its own.
    private func copy(of operation: QueuedWrite, at upstream: Upstream) -> QueuedWriteDraft {
        var request = operation.request
        request.fields[.rockpoolRepeat] = nil
        var copy = QueuedWriteDraft(
            id: UUIDv7.make(at: now()), request: request, body: operation.body, upstream: operation.upstream, entity: operation.entity,
            lane: operation.lane, idempotencyKey: UUIDv7.make(at: now()), principal: operation.principal, priority: operation.priority,
            expiresAt: operation.expiresAt)
        (copy.collection, copy.entityID, copy.newItem) = (operation.collection, operation.entityID, operation.newItem)
        guard let old = operation.localID, let collection = operation.collection else { return copy }
        let id = data.localIDs.mint(isNumber: old.isNumber, now: now())
        (copy.newItem, copy.entityID, copy.entity) = (.local(id), id.text, "\(collection)/\(id.text)")
        func lane(of entity: String?) -> String {
            Lane.name(upstream: upstream.name, entity: entity, order: .entity, principal: operation.principal)
        }
        // A lane that is not named by the entity stays as it is.
        if operation.lane == lane(of: operation.entity) { copy.lane = lane(of: copy.entity) }
        return copy
    }

    private func allowed(
        _ steering: OperationSteering, on operation: QueuedWrite
    ) async throws -> (state: OperationState, reason: OperationReason?, warning: String?) {
        let isInDoubt = try await data.attempts(of: operation).contains(where: \.isInDoubt)
        switch steering.verdict(on: operation, isInDoubt: isInDoubt) {
        case .refused(let why): throw Problem(.conflict, detail: why)
        case .allowed(let state, let reason, let warning): return (state, reason, warning)
        }
    }

    /// Stores a new body: in the row, or in a file above `inlineLimit`.
    func stored(_ bytes: [UInt8]?, else old: OperationBody, for upstream: Upstream) async throws -> OperationBody {
        guard let bytes else { return old }
        guard bytes.count <= upstream.queue.maxBody.bytes else {
            throw Problem(.unprocessable, detail: "the body is longer than queue.max_body (\(upstream.queue.maxBody))")
        }
        if bytes.isEmpty { return .none }
        guard bytes.count > DataStore.inlineLimit else { return .inline(bytes) }
        let writer = try await data.blobWriter(expectedLength: Int64(bytes.count))
        try await writer.append(ByteBuffer(bytes: bytes))
        return try await writer.finish()
    }

    /// Converts the store's refusals into problem documents.
    func problems<T>(_ body: () async throws -> T) async throws -> T {
        do {
            return try await body()
        } catch DataStoreError.needed(let dependants) {
            var problem = Problem(
                .conflict, detail: "\(DataStoreError.needed(by: dependants)); give up all of them together (tree=true), or retry or edit it"
            )
            problem.extensions["dependants"] = .array(dependants.map(\.json))
            throw problem
        } catch let error as DataStoreError where error.isNoRoom {
            throw error.noRoom("nothing has changed")
        } catch let error as DataStoreError {
            switch error {
            case .illegal, .conflictDecided: throw Problem(.conflict, detail: "\(error)")
            default: throw error
            }
        }
    }

    /// Discards the waiting writes of a principal, with those that need them (docs/outbox.md#forgotten). A write that is being sent at this
    /// moment stays.
    /// - Returns: the number of discarded operations of the principal, and of those that still wait.
    /// - Throws: `DataStoreError`.
    package func discardWrites(of principal: String) async throws -> (dropped: Int, waiting: Int) {
        let ids = try await data.waitingIDs(of: principal)
        for id in ids {
            // One that was discarded with an earlier one, or is being sent, is refused.
            do { _ = try await steer(.discard, id: id, withTree: true) } catch is Problem { continue }
        }
        let waiting = try await data.waitingIDs(of: principal).count
        return (max(0, ids.count - waiting), waiting)
    }

    // MARK: - Flush and push

    /// Makes every operation due now that waits for a time, except what an upstream demands to hold back (docs/outbox.md#steering).
    /// - Parameter anyway: true to send also what `Retry-After` holds back.
    /// - Throws: `DataStoreError`.
    package func flush(anyway: Bool = false) async throws -> FlushReport {
        let pending = try await data.openOperations().filter { $0.state == .pending }
        for upstream in Set(pending.map(\.upstream)) {
            notifier.overrule(upstream)
            if anyway { notifier.resume(upstream) }
        }
        let moment = now()
        let held = anyway ? [] : RetryHold.among(pending, pauses: notifier.pauses.current(now: moment), now: moment)
        let kept = anyway ? [] : pending.filter { $0.waitsForRetryAfter(now: moment) }.map(\.sequence)
        let count = try await notifier.flush(except: kept)
        return FlushReport(flushed: max(0, count - held.reduce(0) { $0 + $1.operations } + kept.count), held: held)
    }

    /// Returns until when the upstream demands that a retried operation waits; nil if it may be sent. With `anyway` the demand is ignored.
    func hold(on operation: QueuedWrite, anyway: Bool) -> Timestamp? {
        if anyway {
            notifier.resume(operation.upstream)
            return nil
        }
        let moment = now()
        var retried = operation
        retried.state = .pending
        if operation.state != .pending { retried.nextAttemptAt = moment }
        return retried.heldUntil(pause: notifier.pauses.current(now: moment)[operation.upstream], now: moment)
    }

    /// Makes every waiting operation due, and waits until no more operations can be sent now (docs/reference/admin-api.md#sync
    /// `POST /v1/sync/push`).
    ///
    /// - Parameters:
    ///   - limit: the maximum time to wait.
    ///   - anyway: true to send also what `Retry-After` holds back; otherwise the push does not wait for it.
    /// - Throws: `DataStoreError`.
    package func push(within limit: Duration, anyway: Bool = false) async throws -> PushReport {
        let deadline = ContinuousClock.now + limit
        let before = try await data.deliveredTotal()
        var report = PushReport(flushed: try await flush(anyway: anyway).flushed)
        while true {
            let version = events.version
            var isSending = false
            let paused = notifier.pauses.current(now: now())
            for upstream in active.configuration.upstreams where reachability.isUsable(upstream.name) && paused[upstream.name] == nil {
                isSending = try await data.standing(upstream: upstream.name, now: now()).isSending || isSending
            }
            guard isSending, await events.change(after: version, before: deadline) else { break }
        }
        report.delivered = try await data.deliveredTotal() - before
        let pauses = notifier.pauses.current(now: now())
        report.held = RetryHold.among(try await data.openOperations(), pauses: pauses, now: now())
        report.open = try await data.counts().filter { !$0.key.hasEnded }
        return report
    }

    // MARK: - The status of resources

    /// Returns the status of every declared or learned resource, in the order of the configuration (docs/reference/admin-api.md#sync
    /// `/v1/entities`, docs/guide/sync.md, F1).
    /// - Throws: the error of a store that cannot be read.
    package func entities() async throws -> [ResourceSyncStatus] {
        let open = Dictionary(grouping: try await data.openOperations()) { operation in
            [operation.upstream, active.routes.plan(for: operation.request).entity?.resource?.label ?? ""]
        }
        var standings: [ResourceSyncStatus] = []
        for upstream in active.routes.upstreams where upstream.isDeclared {
            for resource in upstream.resources {
                var standing = ResourceSyncStatus(upstream: upstream.name, resource: resource.label)
                let operations = open[[upstream.name, resource.label], default: []]
                standing.pending = operations.count { $0.state != .dead }
                standing.conflicts = operations.count { $0.state == .conflicted }
                (standing.strategy, standing.fields) = (resource.conflict, resource.fields)
                let writes = Dictionary(grouping: operations.filter { $0.state != .dead }) { $0.entity ?? $0.id }
                for state in writes.values.compactMap({ EntityState.of($0) }) { standing.states[state, default: 0] += 1 }
                let outdated = try await itemIDs(of: resource, upstream: upstream, isOutdated: true)
                standing.states[.pendingPull] = outdated.subtracting(operations.compactMap(\.entityID)).count
                let pulled = try await data.pulledScopes(prefix: "\(upstream.name)|\(resource.collection)|")
                let latest = pulled.max { ($0.syncedAt ?? .distantPast) < ($1.syncedAt ?? .distantPast) }
                (standing.lastSync, standing.serverCount) = (latest?.syncedAt, latest?.serverCount)
                standing.cached = try await cachedIDs(of: resource, upstream: upstream).count
                standings.append(standing)
            }
        }
        return standings
    }

    /// Returns the ids of the entities that are stored as items.
    /// - Parameter isOutdated: true for those alone whose copy is marked as out of date.
    private func itemIDs(of resource: Resource, upstream: Upstream, isOutdated: Bool = false) async throws -> Set<String> {
        var ids: Set<String> = []
        let collection = upstream.origin.url + resource.label
        let items = upstream.origin.url + resource.itemPrefix
        for prefix in items.hasPrefix(collection) ? [collection] : [collection, items] {
            for url in try await cache.urls(prefix: prefix, isPresent: true, isOutdated: isOutdated) {
                guard let request = try? RequestHead(url: url), let entity = active.routes.plan(for: request).entity,
                    entity.resource?.label == resource.label
                else { continue }
                if let id = entity.id { ids.insert(id) }
            }
        }
        return ids
    }

    private func cachedIDs(of resource: Resource, upstream: Upstream) async throws -> Set<String> {
        var ids = try await itemIDs(of: resource, upstream: upstream)
        let collection = upstream.origin.url + resource.label
        for entry in try await cache.entries(ofURL: collection) {
            guard let content = try await reads.lookup.content(of: entry, limit: JSONValue.sizeLimit) else { continue }
            if let value = try? JSONValue.parse(content) { ids.formUnion(resource.ids(in: value) ?? []) }
        }
        return ids
    }
}

// MARK: - Results

/// The result of an accepted command.
package struct OutboxCommandResult: Sendable {
    /// The operation in its new state; after an edit, the new operation.
    package var operation: QueuedWrite
    /// A warning when an earlier attempt may have taken effect (P13).
    package var warning: String?
}

/// The result of a flush.
package struct FlushReport: Hashable, Sendable {
    /// Operations that were made due.
    package var flushed = 0
    /// Operations that wait because their upstream demands so, by upstream.
    package var held: [RetryHold] = []

    package init(flushed: Int = 0, held: [RetryHold] = []) {
        self.flushed = flushed
        self.held = held
    }
}

/// The result of a push.
package struct PushReport: Hashable, Sendable {
    /// Operations that were made due.
    package var flushed = 0
    /// Operations delivered during the push.
    package var delivered = 0
    /// Operations that wait because their upstream demands so, by upstream.
    package var held: [RetryHold] = []
    /// The open operations by state at the end.
    package var open: [OperationState: Int] = [:]
}

/// The status of one declared resource.
package struct ResourceSyncStatus: Hashable, Sendable {
    package var upstream: String
    /// The path of its collection.
    package var resource: String
    /// The number of cached entities, as items or within the whole collection, of all principals.
    package var cached = 0
    /// The number of entities at the upstream, by the last pull; nil where no pull has determined it.
    package var serverCount: Int?
    /// The number of open operations, dead ones excluded.
    package var pending = 0
    package var conflicts = 0
    /// The number of entities in each state.
    package var states: [EntityState: Int] = [:]
    package var strategy = Resource.Conflict.fieldMerge
    /// JSON Pointer → field strategy.
    package var fields: [String: String] = [:]
    /// The time of the last pull.
    package var lastSync: Timestamp?
}

// MARK: - Refusals

/// The refusal of a write for which the outbox has no room, with what to do about it (docs/storage.md#faults).
extension DataStoreError {
    /// The refusal of a write after `.full` or `.diskFull`.
    var noRoom: Problem { noRoom("nothing of this write was kept") }

    /// The refusal after `.full` or `.diskFull`, which have different remedies.
    /// - Parameter effect: what has become of the request.
    func noRoom(_ effect: String) -> Problem {
        let why =
            self == .diskFull
            ? "the disk of the state directory is full; \(effect); free some space on it"
            : "storage.data_limit is reached; \(effect); \(Problem.roomAdvice)"
        return Problem(.outboxFull, detail: why)
    }
}
