// The response to a client, and what it reports when it has been sent (docs/architecture.md#journeys).
import HTTPTypes
package import RockpoolCore
import RockpoolStore

/// The response to the client.
package struct Reply: Sendable {
    package var head: ResponseHead
    package var body: ReplyBody
    package var trace: Trace
    /// True to close the connection (or reset the stream) in place of sending anything (`on_miss: close`).
    package var isWithheld = false
    /// The read that this is the answer to, if it was passed on.
    var passed: PassedRead?
    /// The write that this is the answer to, if it was sent while its client waited.
    var passedWrite: PassedWrite?
    /// Called once by the sender of the reply, when it has ended.
    package var ended: @Sendable (ReplyEnd) -> Void = { _ in }

    package init(head: ResponseHead, body: ReplyBody, trace: Trace) {
        self.head = head
        self.body = body
        self.trace = trace
    }
}

/// A read that was passed on to its upstream, because nothing was stored under its keys, or what was had to be validated.
struct PassedRead: Sendable {
    /// As it was sent, but for the conditions that validate.
    private(set) var request: OutboundRequest
    /// As the client has sent it.
    let received: RequestHead
    let plan: RoutePlan
    let identity: Identity
    /// What became of the answer, as it will of the next one; nil if it has validated what is stored.
    let use: RelayTemplate.Use?

    /// Nil for a read that is not its client's request as it came.
    /// - Parameter request: as it was sent; nil if that is not known.
    init?(_ request: OutboundRequest?, in context: RequestContext, to use: RelayTemplate.Use?) {
        guard let request, !context.isBehind, !context.namesUnmapped, context.bodyDigest == nil else { return nil }
        (self.request, received, plan, identity) = (request, context.request, context.plan, context.identity)
        self.use = use
        guard use == nil else { return }
        for name in [HTTPField.Name.ifNoneMatch, .ifModifiedSince] { self.request.head.fields[name] = nil }
    }

    /// The names of fields by which the configuration tells identities apart, where they are no part of what a credential is known by.
    var configured: [[UInt8]] {
        plan.upstream?.identity.fieldName.flatMap { $0.plainKind == .credential ? nil : [Array($0.canonicalName.utf8)] } ?? []
    }
}

/// A live write that was answered in the usual way: nothing about it but the write itself decided how it was treated.
struct PassedWrite: Sendable {
    /// As it was sent.
    let request: OutboundRequest
    /// The request as the pipeline works with it.
    let received: RequestHead
    let plan: RoutePlan
    let identity: Identity
    let upstream: Upstream
    /// The operation that it would have become.
    let operation: QueuedWriteDraft
    /// Its head, before fields are added for its upstream.
    let head: RequestHead

    /// The head as it was sent, without a key that was made for it.
    var unkeyed: RequestHead { unkeyed(request.head) }

    /// Such a head without a key that was made for it, and the length.
    func unkeyed(_ sent: RequestHead) -> RequestHead {
        var head = sent
        head.fields[values: .contentLength] = []
        if !operation.keyIsClients { head.fields[values: upstream.idempotency.name] = [] }
        return head
    }
}
