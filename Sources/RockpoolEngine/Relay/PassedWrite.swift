// A write that was sent while its client waited, as an example for the next ones (docs/architecture.md#relays).
import HTTPTypes
import RockpoolCore
import RockpoolStore

/// A live write that was answered in the usual way: nothing about it but the write itself decided how it was treated.
struct PassedWrite: Sendable {
    /// As it was sent.
    let request: OutboundRequest
    /// The request as the pipeline works with it.
    let received: RequestHead
    let plan: RoutePlan
    let identity: Identity
    let upstream: Upstream
    /// Without the record of its attempt.
    let write: ReceivedWrite

    /// Nil if the next write of the same form might need more than what this one needed.
    init?(_ write: ReceivedWrite, sentAs request: OutboundRequest?, in context: RequestContext, to upstream: Upstream) {
        guard let request, !write.mustWait, write.condition == nil, Self.isPlain(write.operation),
            context.plan.entity?.resource == nil, context.plan.success == nil, context.plan.route?.kind != .graphql,
            upstream.refresh == nil, !upstream.hasExpectation, context.wishes == WritePreferences(), context.expiry == nil,
            context.identity.signature.isEmpty, !context.namesUnmapped
        else { return nil }
        (self.request, received, plan, identity, self.upstream) = (request, context.request, context.plan, context.identity, upstream)
        var write = write
        write.trace = nil
        self.write = write
    }

    /// The head as it was sent, without the operation's key.
    var unkeyed: RequestHead {
        var head = request.head
        for name in [upstream.idempotency.name, .contentLength] { head.fields[values: name] = [] }
        return head
    }

    /// True for a write that was treated in the same way.
    func isAlike(_ other: PassedWrite) -> Bool { plan == other.plan && identity == other.identity && unkeyed == other.unkeyed }

    /// True for an operation with an own key, and without a reference to any other.
    private static func isPlain(_ operation: QueuedWriteDraft) -> Bool {
        !operation.keyIsClients && operation.dependsOn.isEmpty && operation.conditionedOn.isEmpty && operation.references.isEmpty
            && operation.group == nil && operation.localID == nil && operation.collection == nil && !operation.takesBase
    }
}
