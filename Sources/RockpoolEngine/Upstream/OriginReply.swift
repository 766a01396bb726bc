// The response of an upstream: its head, and a body that still arrives.
package import RockpoolCore

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
    /// The request as it was sent.
    var request: OutboundRequest?

    package init(head: ResponseHead, length: Int64?, body: BodyPipe, wire: WireEvidence? = nil, clock: TransferClock? = nil) {
        self.head = head
        self.length = length
        self.body = body
        self.wire = wire
        self.clock = clock
    }
}
