// The failure of an exchange with an upstream, and how `Proxy-Status` reports it (RFC 9209; docs/outbox.md#evidence).

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

/// The transport's observations about a request.
package struct WireEvidence: Hashable, Sendable {
    /// Bytes sent, head and body.
    package var bytesSent: Int64
    /// True if the connection was opened for this request: on a reused one, a close before the answer proves nothing
    /// (docs/outbox.md#evidence).
    package var isFreshConnection: Bool
    /// True if the request was sent again because its first connection died: the first sending may have been applied.
    package var isRepeated: Bool
    /// True if the response ends its connection (RFC 9112 §9.3).
    package var endsConnection = false

    package init(bytesSent: Int64, isFreshConnection: Bool, isRepeated: Bool = false) {
        self.bytesSent = bytesSent
        self.isFreshConnection = isFreshConnection
        self.isRepeated = isRepeated
    }
}

/// An error type of `Proxy-Status`; the raw value is the registered name.
package enum ProxyError: String, CaseIterable, Sendable, Codable {
    case dnsTimeout = "dns_timeout"
    case dnsError = "dns_error"
    case destinationNotFound = "destination_not_found"
    case destinationUnavailable = "destination_unavailable"
    case destinationIPProhibited = "destination_ip_prohibited"
    case destinationIPUnroutable = "destination_ip_unroutable"
    case connectionRefused = "connection_refused"
    case connectionTerminated = "connection_terminated"
    case connectionTimeout = "connection_timeout"
    case connectionReadTimeout = "connection_read_timeout"
    case connectionWriteTimeout = "connection_write_timeout"
    case connectionLimitReached = "connection_limit_reached"
    case tlsProtocolError = "tls_protocol_error"
    case tlsCertificateError = "tls_certificate_error"
    case tlsAlertReceived = "tls_alert_received"
    case httpRequestError = "http_request_error"
    case httpRequestDenied = "http_request_denied"
    case httpResponseIncomplete = "http_response_incomplete"
    case httpResponseHeaderSectionSize = "http_response_header_section_size"
    case httpResponseHeaderSize = "http_response_header_size"
    case httpResponseBodySize = "http_response_body_size"
    case httpResponseTrailerSectionSize = "http_response_trailer_section_size"
    case httpResponseTrailerSize = "http_response_trailer_size"
    case httpResponseTransferCoding = "http_response_transfer_coding"
    case httpResponseContentCoding = "http_response_content_coding"
    case httpResponseTimeout = "http_response_timeout"
    case httpUpgradeFailed = "http_upgrade_failed"
    case httpProtocolError = "http_protocol_error"
    case proxyInternalResponse = "proxy_internal_response"
    case proxyInternalError = "proxy_internal_error"
    case proxyConfigurationError = "proxy_configuration_error"
    case proxyLoopDetected = "proxy_loop_detected"

    /// The status the RFC recommends for a generated response; if it leaves the choice open, 400 for a faulty request, else 500.
    package var recommendedStatus: Int {
        switch self {
        case .dnsTimeout, .connectionTimeout, .connectionReadTimeout, .connectionWriteTimeout, .httpResponseTimeout: 504
        case .destinationUnavailable, .connectionLimitReached: 503
        case .destinationNotFound, .proxyInternalResponse, .proxyInternalError, .proxyConfigurationError: 500
        case .httpRequestDenied: 403
        case .httpRequestError: 400
        default: 502
        }
    }
}

/// One member of `Proxy-Status`, on generated replies and on stored responses served in place of an upstream (RFC 9209,
/// docs/reference/headers.md#proxy-status).
package struct ProxyStatus: Hashable, Sendable {
    /// The name of this proxy in the list, a token.
    package var proxy: String
    package var error: ProxyError
    /// `host:port` of the upstream.
    package var nextHop: String?

    package init(proxy: String = "rockpool", error: ProxyError, nextHop: String? = nil) {
        self.proxy = proxy
        self.error = error
        self.nextHop = nextHop
    }

    /// The member in field syntax: `rockpool; error=connection_refused; next-hop="api.example.com:443"`.
    package var fieldValue: String {
        var text = "\(proxy); error=\(error.rawValue)"
        if let nextHop { text += "; next-hop=\(StructuredText.string(nextHop))" }
        return text
    }
}
