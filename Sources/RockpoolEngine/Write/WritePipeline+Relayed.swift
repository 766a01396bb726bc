// Writes that a relay sends: whether one may, and the end of those that a relay cannot end (docs/architecture.md#relays).
import RockpoolCore
import RockpoolStore

extension WritePipeline {
    /// True if nothing can be before a write like `operation`: the outbox is empty, and no earlier attempt is under way in its lane.
    func isFree(for operation: QueuedWriteDraft, at upstream: Upstream) -> Bool {
        data.isKnownEmpty && upstreams.isTrusted(upstream) && upstreams.isReachable(upstream)
            && !notifier.laneHolds.holds(
                upstream: upstream.name, lane: operation.lane, forProved: credentials.isProved(operation.principal), now: now())
            && !notifier.effectsUnderWay.contains(upstream: upstream.name, lane: operation.lane, principal: operation.principal)
    }

    /// Ends a write that a relay has recorded: by its answer, by sending it if it was not sent or may be repeated, or in the outbox.
    func conclude(_ write: RelayedWrite, context: inout RequestContext) async -> Reply {
        context.trace.verdict = .pass
        context.trace.cacheStatus = CacheStatus(hit: false, fwd: .method)
        context.trace.record(
            .routed(upstream: context.plan.upstream?.name, category: context.plan.category?.name, strategy: context.plan.strategy))
        context.trace.identity = context.identity
        let body = Spool.Whole(write.body)
        var draft = write.received
        do {
            return try await send(&draft, body: body, context: &context, upstream: write.passed.upstream)
        } catch {
            return outboxFailed(error, body: body, context: &context)
        }
    }
}
