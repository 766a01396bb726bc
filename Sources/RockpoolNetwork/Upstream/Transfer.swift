// One request on a libcurl easy handle: streamed in both directions with pauses, and ended with evidence of the sent bytes.
import CCurl
import Glibc
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolEngine

/// One transfer. Created by the sender, then used on the curl thread alone.
// @unchecked Sendable: confined to the curl thread after `submit(.start)`; `answered` is set before that and called once.
final class Transfer: @unchecked Sendable {
    let request: OutboundRequest
    let addresses: AddressPolicy
    let ownPorts: OwnPorts
    var answered: (Result<OriginReply, TransferFailure>) -> Void = { _ in }
    var isCancelled = false
    /// The connection on which libcurl sends the request; nil before it has one.
    var connection: ConnectionEnds?
    /// True if its connection had data before the request was sent, so that the transfer begins again on a new one.
    private(set) var needsAnother = false
    /// True if libcurl has sent the request on another connection before.
    private var isRepeated = false
    private var session: TLSSession?
    /// The thread that tracks `connection`. Set when the transfer is prepared.
    weak var thread: CurlThread?

    /// Nil before it was prepared and after its end.
    var easy: EasyHandle?
    /// Kept for as long as libcurl reads them.
    var fieldLists: [CurlList] = []
    private var heads: ResponseHeads
    /// The reader of a chunked body, which libcurl passes through undecoded.
    private var chunks: ChunkReader?
    var upload: Upload
    let body: BodyPipe
    /// True while it has one of the places of its host.
    var hasPlace = false
    private var isAnswered = false
    /// The answer without its body, until the sender is told.
    private var reply: OriginReply?
    /// True if the response is a stream of events or messages, whose silence means nothing.
    private var isStream = false
    private var isPausedByConsumer = false
    private var wasPaused = false
    /// An error found by a callback; it ends the transfer and is more specific than libcurl's code.
    private var fault: TransferFailure?
    private var lastProgress = ContinuousClock.now
    private var isConnectionSeen = false
    private let createdAt = ContinuousClock.now
    /// Set when the head has arrived.
    private var clock: TransferClock?
    private var deniedAddress: String?
    /// libcurl's or OpenSSL's description of the error.
    let errorText = CurlErrorText()

    init(request: OutboundRequest, addresses: AddressPolicy, ownPorts: OwnPorts) {
        self.request = request
        self.addresses = addresses
        self.ownPorts = ownPorts
        self.heads = ResponseHeads(
            method: request.head.method.rawValue, allowsBareLF: request.isDeclared,
            acceptsTrailers: request.head.fields.contains(.te),
            negotiates: [.negotiate, .ntlm].contains(request.parentCredential?.auth))
        self.upload = Upload(request.body)
        body = BodyPipe(budget: request.account?.memory ?? .own)
    }

    // MARK: callbacks

    func receiveLine(_ line: UnsafeRawBufferPointer) -> Int {
        lastProgress = .now
        do {
            switch unsafe try heads.receive(Array(line)) {
            case .more: break
            case .interim(let head): request.interim(head)
            case .final(let head, let length, let isChunked):
                isAnswered = true
                isStream = StreamLimits.isStream(head)
                if isChunked { chunks = ChunkReader() }
                clock = easy.map { TransferClock($0.phases(since: createdAt)) }
                session = easy?.session
                var wire = wire
                wire?.endsConnection = easy?.number(CURLINFO_HTTP_VERSION) == CURL_HTTP_VERSION_1_0 || head.endsConnection
                reply = OriginReply(head: head, length: length, body: body, wire: wire, clock: clock)
                thread?.noteHead(of: self)
            }
            return line.count
        } catch {
            fault = TransferFailure(kind: .protocolError, sent: .yes, detail: error.detail)
            return 0
        }
    }

    /// Gives the head that has arrived to the sender. Called once.
    func reportHead() {
        guard let reply else { return }
        self.reply = nil
        answered(.success(reply))
    }

    func receiveBody(_ bytes: UnsafeRawBufferPointer) -> Int {
        lastProgress = .now
        // The body of a step of a handshake with a parent proxy.
        guard isAnswered else { return bytes.count }
        if body.isFull {
            isPausedByConsumer = true
            wasPaused = true
            body.pause()
            return rp_writefunc_pause
        }
        guard chunks != nil else {
            unsafe body.offer(ByteBuffer(bytes: bytes))
            return bytes.count
        }
        do throws(Refusal) {
            var data = ByteBuffer()
            try unsafe chunks?.read(bytes.bindMemory(to: UInt8.self).span) { range in
                unsafe data.writeBytes(UnsafeRawBufferPointer(rebasing: bytes[range]))
            }
            body.offer(data)
            return bytes.count
        } catch {
            fault = TransferFailure(kind: .protocolError, sent: .yes, detail: error.detail)
            return 0
        }
    }

    func supplyBody(_ target: UnsafeMutableRawBufferPointer) -> Int {
        lastProgress = .now
        switch unsafe upload.read(into: target) {
        case .bytes(let count): return count
        case .end: return 0
        case .empty: return rp_readfunc_pause
        case .failed:
            fault = upload.failure ?? TransferFailure(kind: .cancelled, sent: .maybe, detail: "the request body broke off")
            return rp_readfunc_abort
        }
    }

    /// Opens a socket. The resolved address is checked at each attempt, so that a name cannot change its address after the check
    /// (docs/security-model.md#addresses).
    func openSocket(_ address: UnsafeMutablePointer<curl_sockaddr>) -> curl_socket_t {
        // The C struct is longer than Swift's view of it: read the address in place, never copy it.
        let bytes = unsafe UnsafeRawPointer(address) + (MemoryLayout<curl_sockaddr>.offset(of: \.addr) ?? 0)
        let resolved = unsafe IPAddress(bytes, family: sa_family_t(address.pointee.family))
        if request.via == nil, request.peer == nil, let resolved, let reason = unsafe refusal(of: resolved, sockaddr: bytes) {
            deniedAddress = reason
            return rp_socket_bad
        }
        deniedAddress = nil
        let opened = unsafe socket(
            address.pointee.family, address.pointee.socktype | Int32(SOCK_CLOEXEC.rawValue), address.pointee.`protocol`)
        if opened >= 0 { thread?.noteOpening(of: opened) }
        return opened
    }

    /// Called when libcurl has a connection for the request, new or reused, and sends it next.
    /// - Returns: false if the request must not be sent on it.
    func connected(_ ends: ConnectionEnds) -> Bool {
        if connection != nil { isRepeated = true }
        // Each time: a connection that another transfer has refused may still be offered.
        if let host = tlsHost, let session = easy?.session, !session.names(host) {
            fault = TransferFailure(
                kind: .tls, sent: .no, detail: "the certificate does not name \(host) in its subjectAltName; its common name does not count"
            )
            return false
        }
        guard thread?.give(ends, to: self) == false else { return true }
        needsAnother = true
        return false
    }

    /// Notes that the transfer begins.
    /// - Returns: true if it begins again, on a new connection.
    func begin() -> Bool {
        defer { (needsAnother, connection, session) = (false, nil, nil) }
        return needsAnother
    }

    /// True if OpenSSL holds bytes of the connection after the response.
    var hasUnread: Bool { session?.hasUnread ?? false }

    private func refusal(of address: IPAddress, sockaddr: UnsafeRawPointer) -> String? {
        if address.isLoopback, unsafe ownPorts.contains(IPAddress.port(sockaddr)) { return "the target is Rockpool itself" }
        return addresses.refusal(of: address, loopbackAllowed: request.allowsLoopback)
    }

    // MARK: end

    func unpause() {
        isPausedByConsumer = false
        lastProgress = .now
        easy?.resume()
    }

    /// True if the upstream has been silent longer than permitted, counted from the last progress.
    func isOverdue(at now: ContinuousClock.Instant) -> Bool {
        guard let easy, !isPausedByConsumer, hasConnected(easy), !upload.isStarved else { return false }
        // Time spent waiting for a connection does not count as the upstream's silence.
        if !isConnectionSeen {
            isConnectionSeen = true
            lastProgress = now
        }
        let limit = isAnswered ? (isStream ? request.timeouts.streamIdle : request.timeouts.idle) : request.timeouts.firstByte
        return limit != .forever && now - lastProgress > .milliseconds(limit.milliseconds)
    }

    private func hasConnected(_ easy: EasyHandle) -> Bool { easy.offset(CURLINFO_PRETRANSFER_TIME_T) > 0 }

    /// Reports the end to the sender: before the head as a failure, after it by ending the body.
    func conclude(_ code: CURLcode) {
        if code == CURLE_OK, fault == nil, isAnswered, chunks?.isEnded ?? true {
            body.finish(heads.trailers(after: chunks?.trailers ?? []))
            upload.abandon()
            measure()
        } else {
            fail(with: fault ?? CurlFailure.of(code, transfer: evidence))
        }
    }

    /// Records that the network was switched off during the transfer.
    func interrupt() {
        needsAnother = false
        fault = TransferFailure(kind: .unavailable, sent: evidence.sent, detail: "ended: the network is switched off", wire: wire)
    }

    private func measure() {
        guard let easy else { return }
        clock?.end(transfer: easy.offset(CURLINFO_TOTAL_TIME_T) - easy.offset(CURLINFO_STARTTRANSFER_TIME_T))
        guard !wasPaused else { return }
        let duration = easy.offset(CURLINFO_TOTAL_TIME_T) - easy.offset(CURLINFO_STARTTRANSFER_TIME_T)
        request.measured(easy.offset(CURLINFO_SIZE_DOWNLOAD_T), .microseconds(duration))
    }

    func fail(with failure: TransferFailure) {
        if isAnswered {
            body.fail(failure)
        } else {
            isAnswered = true
            answered(.failure(failure))
        }
        upload.abandon()
    }

    /// The bytes sent so far, and the kind of connection.
    private var wire: WireEvidence? {
        guard let easy else { return nil }
        let sent = Int64(easy.number(CURLINFO_REQUEST_SIZE)) + easy.offset(CURLINFO_SIZE_UPLOAD_T)
        return WireEvidence(bytesSent: sent, isFreshConnection: easy.number(CURLINFO_NUM_CONNECTS) > 0, isRepeated: isRepeated)
    }

    private var evidence: CurlFailure.Evidence {
        guard let easy else { return .init() }
        return .init(
            hasConnected: hasConnected(easy), headBytesSent: easy.number(CURLINFO_REQUEST_SIZE), isBodySent: upload.isExhausted,
            isAnswered: isAnswered, isCancelled: isCancelled, denied: deniedAddress, text: errorText.text, wire: wire)
    }

    /// The socket of its connection, where it is kept for a next HTTP/1 request. Nil for HTTP/2, which also sends other frames while idle.
    var pooledSocket: curl_socket_t? {
        guard let easy, easy.number(CURLINFO_HTTP_VERSION) < Int(CURL_HTTP_VERSION_2_0) else { return nil }
        return easy.socket
    }

    /// Frees the handle after the thread has removed it.
    func release() {
        guard let easy else { return }
        if !needsAnother {
            request.spent(
                wire?.bytesSent ?? 0, Int64(easy.number(CURLINFO_HEADER_SIZE)) + easy.offset(CURLINFO_SIZE_DOWNLOAD_T))
        }
        self.easy = nil
        easy.cleanUp()
        fieldLists = []
        // Balances the retain in `setCallbacks`.
        unsafe Unmanaged.passUnretained(self).release()
    }
}

/// The libcurl options of a request.
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
