// Commands of a person on operations: runs the store's transactions, words the refusals and publishes the changes
// (docs/outbox.md#steering *user*).
import HTTPTypes
import NIOCore
package import RockpoolCore
package import RockpoolStore

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
        (copy.collection, copy.entityID) = (operation.collection, operation.entityID)
        guard let old = operation.localID, let collection = operation.collection else { return copy }
        let id = data.localIDs.mint(isNumber: old.isNumber, now: now())
        (copy.localID, copy.entityID, copy.entity) = (id, id.text, "\(collection)/\(id.text)")
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
}
