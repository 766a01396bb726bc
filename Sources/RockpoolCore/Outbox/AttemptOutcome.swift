// What came of sending an operation once, and how far it went (outbox.md §2.4; design §4.5).

/// How one attempt ended.
package enum AttemptOutcome: Hashable, Sendable {
    /// A final response head arrived, whether or not its body was cut: the status line alone says what happened.
    case answered(ResponseHead)
    /// No final head arrived.
    case failed(TransferFailure)

    /// Whether the request may take effect even now: no answer came to what was sent, or only one from in between that lost the origin
    /// (outbox.md §2.4). The last attempt of which this holds is `Operation.lostAt`.
    package var mayStillRun: Bool {
        switch self {
        case .failed(let failure): failure.sent != .no
        case .answered(let head): (500...599).contains(head.status) && ![501, 503, 505, 511].contains(head.status)
        }
    }
}

/// What the transport saw of a request on its way.
package struct WireEvidence: Hashable, Sendable {
    /// Bytes that left, head and body.
    package var bytesSent: Int64
    /// Whether the connection was made for it: on a reused one, a close before the answer says nothing (outbox.md §2.4).
    package var isFreshConnection: Bool

    package init(bytesSent: Int64, isFreshConnection: Bool) {
        self.bytesSent = bytesSent
        self.isFreshConnection = isFreshConnection
    }
}

/// Why an exchange with an upstream brought no response, and whether the request may have reached it.
package struct TransferFailure: Error, Hashable, Sendable {
    /// What failed.
    package enum Kind: String, CaseIterable, Sendable, Codable {
        case dns, refused, tls, reset, denied, cancelled
        case connectTimeout = "connect_timeout"
        case firstByteTimeout = "first_byte_timeout"
        case idleTimeout = "idle_timeout"
        case protocolError = "protocol_error"
        /// Not tried: switched off by hand, or a portal answers in its place.
        case unavailable
        /// More interim (1xx) responses than a well-behaved server sends.
        case tooManyInterim = "too_many_interim"

        /// Whether it is time that ran out.
        package var isTimeout: Bool { self == .firstByteTimeout || self == .idleTimeout || self == .connectTimeout }
    }

    /// How much of the request left for the upstream.
    package enum Sent: String, CaseIterable, Sendable, Codable {
        /// Nothing, or the upstream said it processed none of it (HTTP/2 REFUSED_STREAM, GOAWAY below the stream).
        case no
        /// Some of it, or we cannot tell.
        case maybe
        /// All of it.
        case yes
    }

    /// What failed.
    package var kind: Kind
    /// How far the request went; decides whether sending it again is harmless.
    package var sent: Sent
    /// For people and logs: what the transport said.
    package var detail: String
    /// What left, where the transport knows.
    package var wire: WireEvidence?

    package init(kind: Kind, sent: Sent, detail: String = "", wire: WireEvidence? = nil) {
        self.kind = kind
        self.sent = sent
        self.detail = detail
        self.wire = wire
    }

    /// The error type `Proxy-Status` carries for it (RFC 9209 §2.3).
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

    /// The same for a failure in the middle of a response's body (RFC 9209 §2.3.13).
    package var bodyErrorName: String { kind == .reset ? "http_response_incomplete" : proxyErrorName }
}
