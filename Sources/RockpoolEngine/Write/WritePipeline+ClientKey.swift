// Writes with an idempotency key of their client: one request is handled at a time, and its reply is repeated (docs/outbox.md#client-view).
import RockpoolCore
import RockpoolStore

extension WritePipeline {
    /// Repeats the reply for a client key that was used before; 422 when the request differs (docs/outbox.md#client-view).
    func earlierAnswer(to operation: QueuedWriteDraft, context: RequestContext) async throws -> Reply? {
        guard operation.keyIsClients,
            let (earlier, isSame) = try await data.operation(
                clientKey: operation.idempotencyKey, principal: operation.principal, fingerprint: operation.fingerprint)
        else { return nil }
        guard isSame else {
            return Reply(
                Problem(.keyReused, detail: "idempotency key \(operation.idempotencyKey) was used for another request"), context.trace)
        }
        var again = operation
        (again.localID, again.entityID, again.entity) = (earlier.localID, earlier.entityID, earlier.entity)
        if !context.wishes.respondsAsync, let optimistic = await optimisticReply(to: again, context: context) {
            return reply(optimistic, to: earlier, context: context)
        }
        return await answered(earlier, for: context)
    }

    func underWay(_ key: String, standing: KeysUnderWay.Standing) -> Problem {
        standing == .reused
            ? Problem(.keyReused, detail: "idempotency key \(key) is being used for another request")
            : Problem(.conflict, detail: "a request with idempotency key \(key) is being sent; ask again in a moment", retryAfter: 1)
    }
}
