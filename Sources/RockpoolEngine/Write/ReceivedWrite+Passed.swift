// Which live writes are examples for the next ones (docs/architecture.md#relays).
import HTTPTypes
import RockpoolCore
import RockpoolStore

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

extension QueuedWriteDraft {
    /// True for an operation without a reference to any other.
    fileprivate var isPlain: Bool {
        dependsOn.isEmpty && conditionedOn.isEmpty && references.isEmpty && group == nil && localID == nil
            && collection == nil && !takesBase
    }
}
