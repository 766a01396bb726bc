// The interface to the network: one request to an upstream, one response or a failure with its extent (docs/architecture.md#rules).
package import RockpoolCore

/// Sends requests to upstreams. Implemented by libcurl in `RockpoolNetwork`, and by scripts in tests.
package protocol Origin: Sendable {
    /// Sends `request` and returns when the final response head has arrived; the body follows.
    ///
    /// Throws `TransferFailure`, which states whether the request may have reached the upstream.
    func send(_ request: OutboundRequest) async throws(TransferFailure) -> OriginReply

    /// Aborts every transfer to `origin` (nil: to any origin) and closes its idle connections.
    func endTransfers(to origin: OriginAddress?)

    /// Uses no connection to `origin` again that is kept now: one of them was silent, and the others may have been cut off with it.
    func distrustKept(to origin: OriginAddress)
}

extension Origin {
    package func endTransfers(to origin: OriginAddress?) {}
    package func distrustKept(to origin: OriginAddress) {}
}

/// The response of an upstream.
package struct OriginReply: Sendable {
    package var head: ResponseHead
    /// From Content-Length; nil if chunked or close-delimited.
    package var length: Int64?
    package var body: BodyPipe
    /// The transport's observations of the sent request, if it has any.
    package var wire: WireEvidence?
    /// The clock of the transfer, if it has one.
    package var clock: TransferClock?
    /// The request as it was sent; nil if its connection ends, so that none is kept for others like it.
    var request: OutboundRequest?

    package init(head: ResponseHead, length: Int64?, body: BodyPipe, wire: WireEvidence? = nil, clock: TransferClock? = nil) {
        self.head = head
        self.length = length
        self.body = body
        self.wire = wire
        self.clock = clock
    }
}

extension OriginReply {
    /// The lost answer that a refusal hides: the request was sent twice, because its first connection died, so that its condition may be
    /// refused by its own effect. Nil for any other answer.
    var lostBefore: TransferFailure? {
        guard wire?.isRepeated == true, head.status == 409 || head.status == 412 else { return nil }
        return TransferFailure(kind: .reset, sent: .yes, detail: "sent twice, and \(head.status) to the second", wire: wire)
    }
}
