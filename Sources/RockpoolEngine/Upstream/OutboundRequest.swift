// A request to an upstream, with the settings of its transfer.
package import NIOCore
package import RockpoolCore

/// A request in the form in which it is sent.
package struct OutboundRequest: Sendable {
    package enum Body: Sendable {
        case none
        case bytes(ByteBuffer)
        /// A stored body, read anew by each sending.
        case stored(any BodyReader, length: Int64)
        case stream(BodyPipe, length: Int64?)

        var isNone: Bool { if case .none = self { true } else { false } }
    }

    package var head: RequestHead
    package var body: Body
    package var timeouts: UpstreamTimeouts
    package var tls: TLSSettings
    /// Parent proxy.
    package var via: String?
    /// The gateway that is asked in place of the origin, with the whole URL, as `http://host:port` or `https://…`.
    package var peer: String?
    /// What the parent proxy is told about this process.
    package var parentCredential: ParentCredential?
    /// True if the upstream is declared. Then a response head with lines that end in LF alone is accepted (RFC 9112 §2.2).
    package var isDeclared = false
    /// The client that it is sent for; nil for Rockpool itself.
    package var account: ClientAccount?
    /// True if connections to loopback addresses are allowed.
    package var allowsLoopback: Bool
    /// True to open a new connection, so that a stale keep-alive connection cannot lose the response (docs/outbox.md#resend-rule).
    package var needsFreshConnection: Bool
    /// False to close its connection behind it.
    package var keepsConnection = true
    /// The event loop of the client's connection; nil for what no client waits for.
    package var loop: (any TaskExecutor)?
    /// False once the network is switched off: then it is not sent again.
    package var isPermitted: @Sendable () -> Bool = { true }
    /// Receives interim responses.
    package var interim: @Sendable (ResponseHead) -> Void
    /// Receives the bytes that were sent and received, heads included, once at the end.
    package var spent: @Sendable (_ sent: Int64, _ received: Int64) -> Void = { _, _ in }
    /// Receives the time from the first to the last byte of a whole body, unless its reader delayed it.
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

/// Reads a stored body once from its start, on one thread.
package protocol BodyReader: Sendable {
    /// Returns the next bytes, at most `count`; empty at the end. The last ones are given out only if the whole is intact.
    mutating func next(_ count: Int) throws(TransferFailure) -> ByteBuffer
    /// Begins again at the start.
    mutating func rewind()
}
