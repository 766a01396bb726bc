// A wrapper of libcurl's easy handle that hides its pointers.
import CCurl
import RockpoolCore

/// A libcurl easy handle. Used on the curl thread alone.
@safe struct EasyHandle {
    /// For callbacks and the multi handle.
    let raw: UnsafeMutableRawPointer

    /// Nil when libcurl has no memory for one.
    init?() {
        guard let raw = unsafe curl_easy_init() else { return nil }
        unsafe self.raw = raw
    }

    /// Sets a string option; libcurl copies the text.
    func set(_ option: CURLoption, _ text: String) { unsafe rp_set_string(raw, option, text) }

    func set(_ option: CURLoption, _ number: Int) { unsafe rp_set_long(raw, option, number) }

    func set(_ option: CURLoption, offset: Int64) { unsafe rp_set_off(raw, option, offset) }

    /// Sets a list option; the list must live for as long as the transfer.
    func set(_ option: CURLoption, _ list: CurlList) { unsafe rp_set_list(raw, option, list.first) }

    /// Sets the credential for a parent proxy.
    func set(_ credential: ParentCredential) {
        let method: Int =
            switch credential.auth {
            case .none: 0
            case .basic: 1  // CURLAUTH_BASIC
            case .negotiate: 1 << 2  // CURLAUTH_NEGOTIATE
            case .ntlm: 1 << 3  // CURLAUTH_NTLM
            }
        set(CURLOPT_PROXYAUTH, method)
        // Without a name, Negotiate takes the ticket of this process.
        set(CURLOPT_PROXYUSERNAME, credential.user)
        set(CURLOPT_PROXYPASSWORD, credential.password)
    }

    func number(_ info: CURLINFO) -> Int {
        var number = 0
        unsafe rp_get_long(raw, info, &number)
        return number
    }

    /// Returns a value in bytes or microseconds.
    func offset(_ info: CURLINFO) -> Int64 {
        var offset: Int64 = 0
        unsafe rp_get_off(raw, info, &offset)
        return offset
    }

    /// The socket of its connection; nil without one.
    var socket: curl_socket_t? {
        let socket = unsafe rp_get_socket(raw)
        return socket == rp_socket_bad ? nil : socket
    }

    /// The TLS session of its connection, while a transfer runs; nil without TLS.
    var session: TLSSession? { unsafe rp_get_ssl(raw).map { unsafe TLSSession(raw: $0) } }

    /// Resumes both directions.
    func resume() { unsafe curl_easy_pause(raw, 0) }

    /// Frees the handle: no copy of it may be used afterwards.
    func cleanUp() { unsafe curl_easy_cleanup(raw) }
}

extension EasyHandle {
    /// The phases until the first byte of the response, which has just arrived.
    /// - Parameter start: the time at which the request was handed over.
    func phases(since start: ContinuousClock.Instant) -> TransferTimings {
        var phases = TransferTimings()
        let whole = Int64((ContinuousClock.now - start) / .microseconds(1))
        let (dns, connect, tls) = (
            offset(CURLINFO_NAMELOOKUP_TIME_T), offset(CURLINFO_CONNECT_TIME_T), offset(CURLINFO_APPCONNECT_TIME_T)
        )
        let (ready, first) = (offset(CURLINFO_PRETRANSFER_TIME_T), offset(CURLINFO_STARTTRANSFER_TIME_T))
        phases.queue = first > 0 ? max(0, whole - first) : 0
        phases.dns = dns
        phases.connect = max(0, connect - dns)
        phases.tls = max(0, tls - max(connect, dns))
        phases.firstByte = max(0, (first > 0 ? first : whole) - ready)
        return phases
    }
}

/// OpenSSL's object of a connection, which lives as long as the connection.
@safe struct TLSSession {
    fileprivate let raw: UnsafeMutableRawPointer

    /// True if it holds bytes that nobody has read. Only while the connection is open.
    var hasUnread: Bool { unsafe rp_ssl_has_pending(raw) != 0 }

    /// True if the certificate of the peer names the host in its subjectAltName.
    func names(_ host: String) -> Bool {
        unsafe rp_ssl_names(raw, host, host.utf8.count, IPAddress(host) == nil ? 0 : 1) == 1
    }
}

/// A list of lines that libcurl reads during a transfer.
@safe final class CurlList {
    private(set) var first: UnsafeMutablePointer<curl_slist>?

    init() {}

    func append(_ line: String) { unsafe first = curl_slist_append(first, line) }

    /// Appends a line that is not UTF-8.
    func append(_ line: [UInt8]) {
        unsafe (line + [0]).withUnsafeBytes { bytes in
            unsafe first = curl_slist_append(first, bytes.bindMemory(to: CChar.self).baseAddress)
        }
    }

    deinit { unsafe curl_slist_free_all(first) }
}

/// The buffer for libcurl's error text.
@safe final class CurlErrorText {
    private let bytes = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))

    init() { unsafe bytes.pointee = 0 }

    deinit { unsafe bytes.deallocate() }

    /// Attaches the buffer, which must live for as long as the handle.
    func attach(to easy: EasyHandle) { unsafe rp_set_pointer(easy.raw, CURLOPT_ERRORBUFFER, bytes) }

    /// Empty without an error.
    var text: String { unsafe String(cString: bytes) }
}

/// Evaluates a failed transfer's evidence (docs/outbox.md#evidence).
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
