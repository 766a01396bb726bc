// Probes the upstream for the effect of a write, by a safe request with the operation's own credential
// (docs/outbox.md#uncertain *uncertain*).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore
import Synchronization

extension Replayer {
    func look(_ id: String) async throws -> ReplayMachine.Event {
        guard let operation = try await data.operation(id: id) else { throw DataStoreError.notFound(id: id) }
        let (effect, shown) = await effect(of: operation)
        if case .present(let mapping) = effect {
            var found = shown
            // A list may show less of an item than the item itself.
            if let mapping { found = await lostAnswers.read(mapping.url, of: operation) }
            attempts.withLock { [found] in $0[id, default: SentAttempt()].found = found }
        }
        return .looked(operation, effect)
    }

    /// - Returns: the effect, and what the upstream has answered.
    private func effect(of operation: QueuedWrite) async -> (ObservedEffect, OperationResult?) {
        guard let upstream = active.routes.upstream(named: operation.upstream),
            let outgoing = try? await outbound.outgoing(operation, to: upstream),
            let resource = outgoing.resource, let content = try? data.content(of: operation.body),
            let search = EffectProbe(outgoing.head, body: outgoing.body.inMemory ?? (try? content.bytes()) ?? [], resource: resource)
        else { return (.unknown, nil) }
        let known = await knownItems(of: outgoing.head, operation: operation)
        var question = search.question
        question.fields[upstream.idempotency.name] = nil
        guard let answer = try? await upstreams.send(question, body: .none, upstream: upstream) else { return (.unknown, nil) }
        let (head, body) = await answer.beginning()
        let effect = search.judge(head, body: body) { id in
            known?.contains(id) != false
                || data.localIDs.alias(upstream: upstream.name, collection: operation.collection ?? "", id: id) != nil
        }
        return (effect, OperationResult(head: head, body: body))
    }

    /// Returns the ids of the collection as cached before the operation was first sent, which cannot include the created item. Nil without
    /// such a copy.
    private func knownItems(of head: RequestHead, operation: QueuedWrite) async -> Set<String>? {
        guard operation.localID != nil else { return [] }
        let plan = active.routes.plan(for: head)
        guard let resource = plan.entity?.resource, let firstSentAt = operation.firstSentAt else { return nil }
        let request = RequestHead(method: .get, origin: head.origin, target: head.path, fields: [:])
        for partition in StoragePartition.readable(by: operation.principal) {
            guard let found = try? await cache.lookup(lookup.key(of: request, plan: plan, in: partition)),
                let entry = found.first(where: { $0.response.isListed(before: firstSentAt) }),
                let content = try? await lookup.content(of: entry, limit: JSONValue.sizeLimit),
                let ids = EffectProbe.ids(in: content, resource: resource)
            else { continue }
            return ids
        }
        return nil
    }
}

extension StoredResponse {
    /// True if it shows the collection as it was before `moment`: received by then and not invalidated since.
    fileprivate func isListed(before moment: Timestamp) -> Bool { head.status == 200 && !isInvalidated && responseTime <= moment }
}

extension OutboundRequest.Body {
    /// The bytes, nil if they are not in memory.
    var inMemory: [UInt8]? {
        if case .bytes(let bytes) = self { Array(bytes.readableBytesView) } else { nil }
    }
}
