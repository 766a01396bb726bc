// The outcome of one attempt to send an operation, and how far the request got (docs/outbox.md#evidence; docs/architecture.md#rules).

/// The end of one attempt.
package enum AttemptOutcome: Hashable, Sendable {
    /// A final response head arrived, even if its body was cut off: the status line alone determines the outcome.
    case answered(ResponseHead)
    /// No final head arrived.
    case failed(TransferFailure)

    /// True if the request may still take effect: the sent request got no answer, or only one from an intermediary that lost the origin
    /// (docs/outbox.md#evidence). `Operation.lostAt` is the time of the last such attempt.
    package var mayStillRun: Bool {
        switch self {
        case .failed(let failure): failure.sent != .no
        case .answered(let head): Self.mayStillRun(answered: head.status)
        }
    }

    /// The server errors that prove that the request had no effect.
    package static let effectlessErrors = [501, 503, 505, 511]

    /// True if a response with this status leaves open that the request takes effect.
    package static func mayStillRun(answered status: Int) -> Bool {
        (500...599).contains(status) && !effectlessErrors.contains(status)
    }
}

/// The transport's observations about a request.
package struct WireEvidence: Hashable, Sendable {
    /// Bytes sent, head and body.
    package var bytesSent: Int64
    /// True if the connection was opened for this request: on a reused one, a close before the answer proves nothing
    /// (docs/outbox.md#evidence).
    package var isFreshConnection: Bool

    package init(bytesSent: Int64, isFreshConnection: Bool) {
        self.bytesSent = bytesSent
        self.isFreshConnection = isFreshConnection
    }
}

/// The reason why an exchange with an upstream produced no response, and whether the request may have reached it.
package struct TransferFailure: Error, Hashable, Sendable {
    /// The kind of failure.
    package enum Kind: String, CaseIterable, Sendable, Codable {
        case dns, refused, tls, reset, denied, cancelled
        case connectTimeout = "connect_timeout"
        case firstByteTimeout = "first_byte_timeout"
        case idleTimeout = "idle_timeout"
        case protocolError = "protocol_error"
        /// Not attempted: disabled by the operator, or a portal answers in the upstream's place.
        case unavailable
        /// More interim (1xx) responses than a well-behaved server sends.
        case tooManyInterim = "too_many_interim"

        /// True for the timeouts.
        package var isTimeout: Bool { self == .firstByteTimeout || self == .idleTimeout || self == .connectTimeout }
    }

    /// The part of the request that was sent to the upstream.
    package enum Sent: String, CaseIterable, Sendable, Codable {
        /// Nothing. (HTTP/2's REFUSED_STREAM and GOAWAY do not count: libcurl does not report them.)
        case no
        /// Some of it, or unknown.
        case maybe
        /// All of it.
        case yes
    }

    /// The kind of this failure.
    package var kind: Kind
    /// The part of the request that was sent; decides whether a resend is safe.
    package var sent: Sent
    /// The transport's message, for people and logs.
    package var detail: String
    /// The sent bytes, where the transport knows them.
    package var wire: WireEvidence?

    package init(kind: Kind, sent: Sent, detail: String = "", wire: WireEvidence? = nil) {
        self.kind = kind
        self.sent = sent
        self.detail = detail
        self.wire = wire
    }

    /// The error type in `Proxy-Status` (RFC 9209 §2.3).
    package var proxyErrorName: String {
        switch kind {
        case .dns: "dns_error"
        case .refused: "connection_refused"
        case .connectTimeout: "connection_timeout"
        case .tls: "tls_certificate_error"
        case .reset: "connection_terminated"
        case .firstByteTimeout, .idleTimeout: "connection_read_timeout"
        case .protocolError, .tooManyInterim: "http_protocol_error"
        case .denied: "destination_ip_prohibited"
        case .unavailable: "destination_unavailable"
        case .cancelled: "proxy_internal_error"
        }
    }

    /// The error type of a failure in the middle of a response's body (RFC 9209 §2.3.13).
    package var bodyErrorName: String { kind == .reset ? "http_response_incomplete" : proxyErrorName }
}
