// The registered error types of `Proxy-Status`: reasons why a proxy generated a response (RFC 9209 §2.3).

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
