// Maps libcurl's error codes to failures, and determines whether the request may have arrived (docs/outbox.md#evidence).
import CCurl
import RockpoolCore

/// Evaluates a failed transfer's evidence.
enum CurlFailure {
    /// The known state of a transfer at its end.
    struct Evidence {
        var hasConnected = false
        var headBytesSent = 0
        var isBodySent = false
        var isAnswered = false
        var isCancelled = false
        var denied: String?
        /// libcurl's error text.
        var text = ""
        var wire: WireEvidence?

        /// The part of the request that was sent; `no` only when not one byte can have left.
        var sent: TransferFailure.Sent {
            if isAnswered { return .yes }
            guard hasConnected, headBytesSent > 0 else { return .no }
            return isBodySent ? .yes : .maybe
        }
    }

    static func of(_ code: CURLcode, transfer: Evidence) -> TransferFailure {
        let kind = kind(of: code, transfer: transfer)
        let words = unsafe kind == .tls && !transfer.text.isEmpty ? transfer.text : String(cString: curl_easy_strerror(code))
        let detail = transfer.denied ?? words
        return TransferFailure(kind: kind, sent: transfer.sent, detail: detail, wire: transfer.wire)
    }

    private static func kind(of code: CURLcode, transfer: Evidence) -> TransferFailure.Kind {
        if transfer.denied != nil { return .denied }
        switch code {
        case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY: return .dns
        case CURLE_COULDNT_CONNECT: return .refused
        case CURLE_OPERATION_TIMEDOUT:
            return !transfer.hasConnected ? .connectTimeout : transfer.isAnswered ? .idleTimeout : .firstByteTimeout
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER, CURLE_SSL_CACERT_BADFILE,
            CURLE_SSL_ISSUER_ERROR, CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_INVALIDCERTSTATUS:
            return .tls
        // Also the code of a handshake that the network cut off; OpenSSL's own errors concern the received messages.
        case CURLE_SSL_CONNECT_ERROR where transfer.text.contains("SSL routines") && !transfer.text.contains("unexpected eof"):
            return .tls
        // In TLS 1.3 a server verifies the client certificate after the client's side of the handshake is complete.
        case CURLE_RECV_ERROR where isAboutCertificate(transfer.text), CURLE_SEND_ERROR where isAboutCertificate(transfer.text): return .tls
        case CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL, CURLE_BAD_CONTENT_ENCODING, CURLE_WRITE_ERROR: return .protocolError
        case CURLE_ABORTED_BY_CALLBACK where transfer.isCancelled: return .cancelled
        default: return .reset
        }
    }

    /// True if OpenSSL reports an alert about the client certificate (RFC 8446 §6.2).
    private static func isAboutCertificate(_ text: String) -> Bool {
        text.contains("SSL routines") && text.contains("alert") && (text.contains("certificate") || text.contains("unknown ca"))
    }
}
