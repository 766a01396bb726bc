// What a person does with operations: the store's transactions, with the words and the events that go with them (docs/outbox.md#steering
// *user*).
import HTTPTypes
import NIOCore
package import RockpoolCore
import RockpoolStore

/// A command that was obeyed.
package struct Steered: Sendable {
    /// What the operation is now; after an edit the new one.
    package var operation: RockpoolCore.Operation
    /// What could not be promised (P13).
    package var warning: String?
}

extension Engine {
    /// Retries, cancels or discards one operation.
    /// - Parameter withTree: whether what needs it goes with it; otherwise it stays, and nothing changes.
    /// - Returns: nil when there is none of that id.
    /// - Throws: a `Problem` 409 with the words, and the `dependants` that are in the way; `DataStoreError`.
    package func steer(_ steering: OperationSteering, id: String, withTree: Bool = false) async throws -> Steered? {
        guard let operation = try await data.operation(id: id) else { return nil }
        let (state, reason, warning) = try await allowed(steering, operation)
        return try await problems {
            var moved: [RockpoolCore.Operation]
            if state == .cancelled, let reason {
                moved = try await data.giveUp(id: id, reason: reason, from: steering.allowedFrom, withTree: withTree, now: now())
            } else {
                moved = [
                    try await data.transition(
                        id: id, to: state, reason: reason, nextAttemptAt: now(), from: steering.allowedFrom, now: now())
                ]
            }
            for operation in moved { tell(operation) }
            return Steered(operation: moved[0], warning: warning)
        }
    }

    /// Tries everything of a lane again that needs no decision of its own.
    package func retry(lane: String, upstream: String?) async throws -> (retried: [String], uncertain: [String]) {
        let result = try await data.retry(lane: lane, upstream: upstream, now: now())
        for id in result.retried { if let operation = try await data.operation(id: id) { tell(operation) } }
        return result
    }

    /// Ends an operation and puts an edited one in its place, under a key of its own.
    /// - Returns: nil when there is none of that id.
    /// - Throws: a `Problem` 409 or 422 with the words; `DataStoreError`.
    package func edit(id: String, _ edit: OperationEdit) async throws -> Steered? {
        guard let operation = try await data.operation(id: id) else { return nil }
        let (_, _, warning) = try await allowed(.edit, operation)
        guard !edit.isEmpty else { throw Problem(.unprocessable, detail: "the edit changes nothing") }
        guard let upstream = routes.upstream(named: operation.upstream) else {
            throw Problem(.unprocessable, detail: "its upstream \(operation.upstream) is not declared any more")
        }
        var (request, bytes): (RequestHead, [UInt8]?)
        do { (request, bytes) = try edit.applied(to: operation.request) } catch { throw Problem(error) }
        guard request.origin == upstream.origin else {
            throw Problem(
                .unprocessable,
                detail: "\(request.origin.url) is not the upstream \(upstream.name) (\(upstream.origin.url)) it was meant for")
        }
        // The client's key stands for the old payload, at the upstream as at our door (docs/outbox.md#keys).
        request.fields[upstream.idempotency.name] = nil
        let entity = request.url == operation.request.url ? operation.entity : routes.plan(for: request).entity?.path
        return try await problems {
            let new = NewOperation(
                id: newUUID(), request: request,
                body: try await stored(bytes, else: operation.body, upstream), upstream: upstream.name, entity: entity,
                lane: operation.lane, idempotencyKey: newUUID(),
                principal: operation.principal, priority: operation.priority, expiresAt: operation.expiresAt)
            do {
                let edited = try await data.replace(id: id, by: new, from: OperationSteering.edit.allowedFrom, now: now())
                // The new one and what waits for it first: when the old one ends, nothing may take that for the end of its wait.
                let waiting = try await data.dependants(of: edited).map(\.id)
                for changed in [edited.id] + waiting + [id] { if let operation = try await data.operation(id: changed) { tell(operation) } }
                return Steered(operation: edited, warning: warning)
            } catch {
                if bytes != nil { data.discard(new.body) }
                throw error
            }
        }
    }

    private func allowed(
        _ steering: OperationSteering, _ operation: RockpoolCore.Operation
    ) async throws -> (state: OperationState, reason: OperationReason?, warning: String?) {
        let isInDoubt = try await data.attempts(of: operation).contains(where: \.isInDoubt)
        switch steering.verdict(on: operation, isInDoubt: isInDoubt) {
        case .refused(let why): throw Problem(.conflict, detail: why)
        case .allowed(let state, let reason, let warning): return (state, reason, warning)
        }
    }

    /// A new body where it belongs: in the row, or in a file.
    func stored(_ bytes: [UInt8]?, else old: OperationBody, _ upstream: Upstream) async throws -> OperationBody {
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

    /// What the store refuses, in the words of the API.
    func problems<T>(_ body: () async throws -> T) async throws -> T {
        do {
            return try await body()
        } catch DataStoreError.needed(let dependants) {
            var problem = Problem(
                .conflict, detail: "\(DataStoreError.needed(by: dependants)); give up all of them together (tree=true), or retry or edit it"
            )
            problem.extensions["dependants"] = .array(dependants.map(\.json))
            throw problem
        } catch DataStoreError.full {
            throw Problem(.outboxFull, detail: "storage.data_limit is reached; nothing has changed")
        } catch let error as DataStoreError {
            switch error {
            case .illegal, .conflictDecided: throw Problem(.conflict, detail: "\(error)")
            default: throw error
            }
        }
    }
}

extension Problem: Error {}
