// The interface to the network: one request to an upstream, one response or a failure with its extent (docs/architecture.md#rules).
import HTTPTypes
package import NIOCore
package import RockpoolCore
import Synchronization

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

// MARK: - Requests

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

// MARK: - Phases of a transfer

/// Holds the phases of a transfer for the records of the exchanges that it serves (docs/reference/admin-api.md#requests).
package final class TransferClock: Sendable {
    private let phases: Mutex<TransferTimings>

    /// - Parameter phases: those until the first byte.
    package init(_ phases: TransferTimings) { self.phases = Mutex(phases) }

    package var timings: TransferTimings { phases.withLock(\.self) }

    /// Records the end of the body.
    /// - Parameter transfer: microseconds since the first byte.
    package func end(transfer: Int64) { phases.withLock { $0.transfer = max(0, transfer) } }
}

// MARK: - Failures

/// Failures caused by Rockpool or the client, and the meaning of failures for reachability.
extension TransferFailure {
    /// The client that requested the response has left.
    package static let cancelled = TransferFailure(kind: .cancelled, sent: .maybe, detail: "nobody waits for the answer any more")

    /// A request that was not attempted because the upstream is unreachable or switched off. While it is offline, the kind is that of the
    /// last recorded failure.
    static func notTried(_ reason: Reachability.Reason, _ last: String?) -> TransferFailure {
        let kind: Kind =
            switch last {
            case "dns_error" where reason == .offline: .dns
            case _ where reason != .offline: .unavailable
            case "connection_timeout": .connectTimeout
            case "connection_read_timeout": .firstByteTimeout
            default: .refused
            }
        return TransferFailure(kind: kind, sent: .no, detail: "not tried, the upstream is \(reason.rawValue)")
    }

    /// The failure as a reachability event; nil if it shows nothing about reachability.
    var reachabilityKind: Reachability.FailureKind? {
        switch kind {
        case .dns: .dns
        case .refused: .refused
        case .connectTimeout: .connectTimeout
        case .tls: .tls
        case .reset: .reset
        case .firstByteTimeout: .firstByteTimeout
        case .denied, .cancelled, .damaged, .unavailable, .idleTimeout, .protocolError, .tooManyInterim: nil
        }
    }
}

// MARK: - Early answers

/// The answer to a request that was sent by a relay. The pipeline takes it where it would send the same request
/// (docs/architecture.md#relays).
package final class EarlyAnswer: Sendable {
    /// The request that was sent.
    let request: RequestHead
    /// The head as it was received; empty for a failure.
    let head: [UInt8]
    /// What the relay was about: a `RelayedRead`, a `RelayedWrite`, or nothing but the request.
    let subject: (any Sendable)?
    /// What became of the request if it was sent, lost, and may be repeated: the first sending may have had its effect.
    let lost: TransferFailure?
    let sentAt: Moment
    /// True for a write, which must not be sent twice.
    private let isWrite: Bool
    private let result: Mutex<Result<OriginReply, TransferFailure>?>

    /// - Parameter result: nil if the pipeline is to send the request: it was not sent, or it was lost and may be repeated.
    init(
        to request: RequestHead, head: [UInt8], subject: (any Sendable)?, isWrite: Bool, result: Result<OriginReply, TransferFailure>?,
        lost: TransferFailure?, sentAt: Moment
    ) {
        (self.request, self.head, self.subject, self.isWrite) = (request, head, subject, isWrite)
        (self.lost, self.sentAt) = (lost, sentAt)
        self.result = Mutex(result)
    }

    deinit {
        if case .success(let reply)? = result.withLock({ $0 }) { reply.body.abandon() }
    }

    /// True if there is no answer, or the pipeline has it.
    package var isTaken: Bool { result.withLock { $0 == nil } }

    /// When the request was sent, if its answer waits to be taken; nil otherwise. What is invalidated since then is newer than
    /// the answer.
    var answeredSince: Moment? { isTaken ? nil : sentAt }

    /// True for a write whose answer, or the lack of it, waits to be taken.
    var holdsWrite: Bool { isWrite && !isTaken }

    /// Returns the answer, once, if the request is the one that was sent; nil if it must be sent.
    ///
    /// Throws the failure of the request; also if a write was sent in place of this one, which must not be sent twice.
    func take(for request: OutboundRequest) throws(TransferFailure) -> OriginReply? {
        guard isWrite || request.head == self.request && request.peer == nil && request.body.isNone else { return nil }
        let taken = result.withLock { result in
            defer { result = nil }
            return result
        }
        guard let taken else { return nil }
        guard !isWrite || request.head.method == self.request.method && request.head.url == self.request.url else {
            throw TransferFailure(kind: .reset, sent: .maybe, detail: "another request was sent")
        }
        return try taken.get()
    }
}

extension OriginReply {
    /// True if the answer has no content, false if it has some; nil if that is not known before its end.
    var isEmpty: Bool? {
        if head.status == 204 || head.status == 205 { return true }
        if let length { return length == 0 }
        if body.takeWhole(upTo: 0) != nil { return true }
        return head.fields.contains(.contentType) ? false : nil
    }
}
