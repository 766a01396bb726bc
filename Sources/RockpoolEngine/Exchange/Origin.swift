// The seam to the network: one request to an upstream, one answer or a failure that says how far it went (docs/architecture.md#rules).
package import NIOCore
package import RockpoolCore

/// Sends requests to upstreams. The real one is libcurl in `RockpoolNetwork`; tests script their own.
package protocol Origin: Sendable {
    /// Sends `request` and returns once the final head of the answer is there; its body is still coming.
    ///
    /// Throws `TransferFailure`, which says whether the request may have reached the upstream.
    func send(_ request: OutboundRequest) async throws(TransferFailure) -> OriginReply

    /// Breaks off every transfer to `origin`, to any origin when nil, and closes the connections that are kept for a next one.
    func endTransfers(to origin: OriginAddress?)
}

extension Origin {
    package func endTransfers(to origin: OriginAddress?) {}
}

/// A request as it leaves.
package struct OutboundRequest: Sendable {
    package enum Body: Sendable {
        case none
        case bytes(ByteBuffer)
        case file(path: String, length: Int64)
        /// A body that lies sealed: `read` opens any range of it.
        case sealed(length: Int64, read: @Sendable (Range<Int64>) throws -> ByteBuffer)
        case stream(BodyPipe, length: Int64?)
    }

    package var head: RequestHead
    package var body: Body
    package var timeouts: UpstreamTimeouts
    package var tls: TLSSettings
    /// Parent proxy.
    package var via: String?
    /// Whether its owner has declared the upstream: then a head whose lines end in LF alone is read (RFC 9112 §2.2).
    package var isDeclared = false
    /// Whether loopback addresses may be connected to.
    package var allowsLoopback: Bool
    /// A connection of its own, so that a stale keep-alive cannot lose the answer (docs/outbox.md#resend-rule).
    package var needsFreshConnection: Bool
    /// Hears interim responses.
    package var interim: @Sendable (ResponseHead) -> Void
    /// Hears how long a whole body took from its first byte to its last, unless its reader kept it waiting.
    package var measured: @Sendable (_ bytes: Int64, _ duration: Duration) -> Void

    package init(
        head: RequestHead, body: Body = .none, timeouts: UpstreamTimeouts = UpstreamTimeouts(), tls: TLSSettings = TLSSettings(),
        via: String? = nil, allowsLoopback: Bool = true, needsFreshConnection: Bool = false,
        interim: @escaping @Sendable (ResponseHead) -> Void = { _ in },
        measured: @escaping @Sendable (Int64, Duration) -> Void = { _, _ in }
    ) {
        self.head = head
        self.body = body
        self.timeouts = timeouts
        self.tls = tls
        self.via = via
        self.allowsLoopback = allowsLoopback
        self.needsFreshConnection = needsFreshConnection
        self.interim = interim
        self.measured = measured
    }
}

/// An upstream's answer.
package struct OriginReply: Sendable {
    package var head: ResponseHead
    /// From Content-Length; nil when chunked or close-delimited.
    package var length: Int64?
    package var body: BodyPipe
    /// What had left when the answer came, where the transport knows.
    package var wire: WireEvidence?

    package init(head: ResponseHead, length: Int64?, body: BodyPipe, wire: WireEvidence? = nil) {
        self.head = head
        self.length = length
        self.body = body
        self.wire = wire
    }
}
