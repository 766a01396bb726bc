// The failure of an exchange with an upstream (RFC 9209 §2.3; docs/outbox.md#evidence).

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
        /// The stored body of the request is missing or is not what its name says; the request was broken off.
        case damaged
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
        case .cancelled, .damaged: "proxy_internal_error"
        }
    }

    /// The error type of a failure in the middle of a response's body (RFC 9209 §2.3.13).
    package var bodyErrorName: String { kind == .reset ? "http_response_incomplete" : proxyErrorName }
}
