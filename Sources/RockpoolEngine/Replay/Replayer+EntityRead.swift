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
            let resource = outgoing.resource, let sent = try? outgoing.body.inMemory ?? outbound.bytes(of: operation),
            let search = EffectProbe(outgoing.head, body: sent, resource: resource)
        else { return (.unknown, nil) }
        let known = operation.localID == nil ? [] : await itemsBefore.ids(for: operation, as: outgoing.head)
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
}

extension OutboundRequest.Body {
    /// The bytes, nil if they are not in memory.
    var inMemory: [UInt8]? {
        if case .bytes(let bytes) = self { Array(bytes.readableBytesView) } else { nil }
    }
}
