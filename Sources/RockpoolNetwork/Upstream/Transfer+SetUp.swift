// The libcurl options of a request.
import CCurl
import HTTPTypes
import RockpoolCore
import RockpoolEngine

extension Transfer {
    /// Creates the easy handle. Nil when libcurl has no memory for one.
    func prepare(on thread: CurlThread) -> EasyHandle? {
        // Handles are never reused: libcurl 7.88, which Debian 12 has, keeps a pointer into the fields of the last answer, and would append
        // a folded first line of the next one to freed memory. Reuse would save a quarter of a microsecond.
        guard let easy = EasyHandle() else { return nil }
        self.easy = easy
        self.thread = thread
        let isAgain = begin()
        easy.set(CURLOPT_NOSIGNAL, 1)
        // A resolver that hangs must not block the thread when its transfer ends.
        easy.set(CURLOPT_QUICK_EXIT, 1)
        // A parent proxy's answer to CONNECT is not the upstream's.
        easy.set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        easy.set(CURLOPT_PROXY, request.via ?? "")
        if let credential = request.parentCredential { easy.set(credential) }
        // Ignore the environment's proxy exceptions.
        easy.set(CURLOPT_NOPROXY, "")
        easy.set(CURLOPT_URL, (request.peer ?? request.head.origin.url) + "/")
        easy.set(CURLOPT_REQUEST_TARGET, requestTarget)
        // HTTP/2 where the upstream offers it in its handshake, and never in plaintext.
        easy.set(CURLOPT_HTTP_VERSION, Int(request.peer == nil && isEncrypted ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1))
        // The chunked coding is passed through: libcurl accepts invalid line ends (`ChunkReader`).
        easy.set(CURLOPT_HTTP_TRANSFER_DECODING, 0)
        errorText.attach(to: easy)
        // A stream may be silent for hours; a peer that is gone must not keep it open.
        easy.set(CURLOPT_TCP_KEEPALIVE, 1)
        easy.set(CURLOPT_CONNECTTIMEOUT_MS, Int(clamping: request.timeouts.connect.milliseconds))
        setReuse(on: easy, isAgain: isAgain, longestAge: thread.longestAge(to: request.head.origin))
        setMethod(on: easy)
        setFields(on: easy)
        setTLS(on: easy)
        setCallbacks(on: easy)
        thread.watchClosing(by: easy)
        upload.onReadable { [weak self, weak thread] in
            if let self { thread?.submit(.resume(self)) }
        }
        body.onSignal { [weak self, weak thread] signal in
            guard let self else { return }
            switch signal {
            case .wanted: break
            case .drained: thread?.submit(.resume(self))
            case .abandoned: thread?.submit(.cancel(self))
            }
        }
        return easy
    }

    /// The target as sent: in absolute form for a parent HTTP proxy, which has no other source of the origin (RFC 9112 §3.2.2).
    private var requestTarget: String {
        let isForwarded = request.via?.hasPrefix("http") == true && request.head.origin.scheme == .http
        return isForwarded || request.peer != nil ? request.head.url : request.head.target
    }

    /// True if the connection to the origin, or to the gateway in its place, is encrypted.
    private var isEncrypted: Bool { request.peer.map { $0.hasPrefix("https:") } ?? (request.head.origin.scheme == .https) }

    /// The host that the certificate must name; nil without TLS.
    var tlsHost: String? {
        guard isEncrypted else { return nil }
        return (request.peer.flatMap { try? RequestHead(url: $0 + "/") }?.origin ?? request.head.origin).host
    }

    private func setMethod(on easy: EasyHandle) {
        if upload.hasBody {
            easy.set(CURLOPT_UPLOAD, 1)
            easy.set(CURLOPT_INFILESIZE_LARGE, offset: upload.length ?? -1)
        }
        easy.set(CURLOPT_CUSTOMREQUEST, request.head.method.rawValue)
        // Must be last, because an upload would reset it.
        if request.head.method == .head { easy.set(CURLOPT_NOBODY, 1) }
    }

    /// libcurl resends automatically when a reused connection dies at once: correct only for a request that may be repeated and rewound. A
    /// connection that authenticates itself belongs to one principal (docs/security-model.md#upstream-tls).
    private func setReuse(on easy: EasyHandle, isAgain: Bool, longestAge: Int?) {
        let scheme = request.head.fields[.authorization]?.prefix { $0 != " " }.lowercased()
        let isBoundToIdentity = scheme == "ntlm" || scheme == "negotiate"
        // A pooled connection is not checked again, and may lead to an address that this client must not reach.
        let isFresh =
            isAgain || longestAge == 0 || request.needsFreshConnection || upload.isStream || isBoundToIdentity || !request.allowsLoopback
        if isFresh { easy.set(CURLOPT_FRESH_CONNECT, 1) }
        if let longestAge, longestAge > 0 { easy.set(CURLOPT_MAXLIFETIME_CONN, longestAge) }
        if isBoundToIdentity || !request.keepsConnection { easy.set(CURLOPT_FORBID_REUSE, 1) }
    }

    private func setFields(on easy: EasyHandle) {
        let lines = CurlList()
        // A gateway with `preserve_host` keeps the name that its client used.
        lines.append("Host: \(request.head.fields[.hostField] ?? request.head.origin.authority)")
        // An option of the hop must be named as one; HTTP/2 has no such field, and libcurl leaves it out there (RFC 9110 §10.1.4).
        if request.head.fields.contains(.te) { lines.append("Connection: TE") }
        for field in request.head.fields where field.name != .hostField && field.name != .expect {
            let value = field.value
            if field.mayBeLossy {
                lines.append(Array("\(field.name.rawName): ".utf8) + field.valueBytes)
            } else {
                lines.append(value.isEmpty ? "\(field.name.rawName);" : "\(field.name.rawName): \(value)")
            }
        }
        // libcurl adds these fields unless they are set.
        if !request.head.fields.contains(.accept) { lines.append("Accept:") }
        // The proxy sends the `100 Continue` itself, when the body is first read; libcurl would retry on a 417.
        lines.append("Expect:")
        if !upload.hasBody, ["POST", "PUT", "PATCH"].contains(request.head.method.rawValue) { lines.append("Content-Length: 0") }
        set(CURLOPT_HTTPHEADER, list: lines, on: easy)
        guard request.via != nil else { return }
        // libcurl's own `Proxy-Connection` has no meaning (RFC 9112 appendix C.2.2).
        let ours = CurlList()
        ours.append("Proxy-Connection:")
        set(CURLOPT_PROXYHEADER, list: ours, on: easy)
    }

    private func set(_ option: CURLoption, list: CurlList, on easy: EasyHandle) {
        fieldLists.append(list)
        easy.set(option, list)
    }

    private func setTLS(on easy: EasyHandle) {
        guard isEncrypted else { return }
        easy.set(CURLOPT_SSL_VERIFYPEER, 1)
        easy.set(CURLOPT_SSL_VERIFYHOST, 2)
        let version = request.tls.minVersion == "1.3" ? CURL_SSLVERSION_TLSv1_3 : CURL_SSLVERSION_TLSv1_2
        easy.set(CURLOPT_SSLVERSION, Int(version))
        // The system's directory of hashed certificates remains in use besides the configured file.
        if let file = request.tls.caFile { easy.set(CURLOPT_CAINFO, file) }
        if let file = request.tls.clientCert { easy.set(CURLOPT_SSLCERT, file) }
        if let file = request.tls.clientKey { easy.set(CURLOPT_SSLKEY, file) }
    }

    /// Sets the callbacks. Their pointer is retained here until `release`.
    private func setCallbacks(on easy: EasyHandle) {
        let (raw, this) = unsafe (easy.raw, Unmanaged.passRetained(self).toOpaque())
        unsafe rp_set_pointer(raw, CURLOPT_PRIVATE, this)
        unsafe rp_set_pointer(raw, CURLOPT_HEADERDATA, this)
        unsafe rp_set_data_callback(raw, CURLOPT_HEADERFUNCTION) { bytes, size, count, this in
            unsafe Transfer.of(this)?.receiveLine(UnsafeRawBufferPointer(start: bytes, count: size * count)) ?? 0
        }
        unsafe rp_set_pointer(raw, CURLOPT_WRITEDATA, this)
        unsafe rp_set_data_callback(raw, CURLOPT_WRITEFUNCTION) { bytes, size, count, this in
            unsafe Transfer.of(this)?.receiveBody(UnsafeRawBufferPointer(start: bytes, count: size * count)) ?? 0
        }
        unsafe rp_set_pointer(raw, CURLOPT_READDATA, this)
        unsafe rp_set_data_callback(raw, CURLOPT_READFUNCTION) { bytes, size, count, this in
            unsafe Transfer.of(this)?.supplyBody(UnsafeMutableRawBufferPointer(start: bytes, count: size * count)) ?? rp_readfunc_abort
        }
        unsafe rp_set_pointer(raw, CURLOPT_SEEKDATA, this)
        unsafe rp_set_seek_callback(raw) { this, offset, whence in
            unsafe Transfer.of(this)?.upload.rewind(to: Int64(offset), whence: whence) == true ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL
        }
        unsafe rp_set_pointer(raw, CURLOPT_PREREQDATA, this)
        unsafe rp_set_prereq_callback(raw) { this, remote, local, remotePort, localPort in
            guard let transfer = unsafe Transfer.of(this), let remote = unsafe remote, let local = unsafe local else {
                return rp_prereqfunc_ok
            }
            let ends = unsafe ConnectionEnds(
                localAddress: String(cString: local), localPort: localPort, remoteAddress: String(cString: remote), remotePort: remotePort)
            return transfer.connected(ends) ? rp_prereqfunc_ok : rp_prereqfunc_abort
        }
        unsafe rp_set_pointer(raw, CURLOPT_OPENSOCKETDATA, this)
        unsafe rp_set_open_callback(raw) { this, _, address in
            guard let transfer = unsafe Transfer.of(this), let address = unsafe address else { return rp_socket_bad }
            return unsafe transfer.openSocket(address)
        }
    }

    /// Returns the transfer from libcurl's callback pointer.
    static func of(_ this: UnsafeMutableRawPointer?) -> Transfer? {
        unsafe this.map { unsafe Unmanaged<Transfer>.fromOpaque($0).takeUnretainedValue() }
    }
}
