// One request on a libcurl easy handle: set up, streamed both ways with pauses, ended with evidence of how far it went.
import CCurl
import Glibc
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolEngine

/// One transfer. Created by the sender, then touched on the curl thread alone.
// @unchecked Sendable: confined to the curl thread after `submit(.start)`; `answered` is set before that and called once.
final class Transfer: @unchecked Sendable {
    let request: OutboundRequest
    let addresses: AddressPolicy
    let ownPorts: OwnPorts
    var answered: (Result<OriginReply, TransferFailure>) -> Void = { _ in }
    var isCancelled = false

    private(set) var easy: UnsafeMutableRawPointer?
    private var fieldList: UnsafeMutablePointer<curl_slist>?
    private var proxyFieldList: UnsafeMutablePointer<curl_slist>?
    private var heads: ResponseHeads
    private var upload: Upload
    private let body = BodyPipe()
    private var isAnswered = false
    private var isPausedByConsumer = false
    /// What a callback found wrong; it ends the transfer and says more than libcurl's code.
    private var fault: TransferFailure?
    private var lastProgress = ContinuousClock.now
    private var isConnectionSeen = false
    private var deniedAddress: String?
    /// Where libcurl says what went wrong, in the words of those who told it.
    private let errorText = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))

    init(request: OutboundRequest, addresses: AddressPolicy, ownPorts: OwnPorts) {
        self.request = request
        self.addresses = addresses
        self.ownPorts = ownPorts
        self.heads = ResponseHeads(method: request.head.method.rawValue)
        self.upload = Upload(request.body)
    }

    deinit { errorText.deallocate() }

    // MARK: set-up

    /// Makes the easy handle. Nil when libcurl has no memory for one.
    func prepare(on thread: CurlThread) -> UnsafeMutableRawPointer? {
        // Never one that was used before: libcurl 7.88, which Debian 12 has, keeps a pointer into the fields of the last answer, and
        // a next one that begins with a folded line is appended to what was freed. Clearing a handle saves a quarter of a microsecond.
        guard let easy = curl_easy_init() else { return nil }
        self.easy = easy
        let this = Unmanaged.passRetained(self).toOpaque()
        rp_set_pointer(easy, CURLOPT_PRIVATE, this)
        rp_set_long(easy, CURLOPT_NOSIGNAL, 1)
        // A resolver that hangs must not hang the thread with it when its transfer ends.
        rp_set_long(easy, CURLOPT_QUICK_EXIT, 1)
        // A parent proxy's answer to CONNECT is not the upstream's.
        rp_set_long(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        rp_set_string(easy, CURLOPT_PROXY, request.via ?? "")
        // The environment has no say in which way a request goes.
        rp_set_string(easy, CURLOPT_NOPROXY, "")
        rp_set_string(easy, CURLOPT_URL, request.head.origin.url + "/")
        rp_set_string(easy, CURLOPT_REQUEST_TARGET, requestTarget)
        // HTTP/2 where the upstream offers it in its handshake, and never in the clear.
        rp_set_long(easy, CURLOPT_HTTP_VERSION, Int(request.head.origin.scheme == .https ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1))
        errorText.pointee = 0
        rp_set_pointer(easy, CURLOPT_ERRORBUFFER, errorText)
        rp_set_long(easy, CURLOPT_CONNECTTIMEOUT_MS, Int(clamping: request.timeouts.connect.milliseconds))
        setReuse(easy)
        setMethod(easy)
        setFields(easy)
        setTLS(easy)
        setCallbacks(easy, this)
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

    /// The target as sent: whole for a parent HTTP proxy, which knows the origin from it alone (RFC 9112 §3.2.2).
    private var requestTarget: String {
        let isForwarded = request.via?.hasPrefix("http") == true && request.head.origin.scheme == .http
        return isForwarded ? request.head.url : request.head.target
    }

    private func setMethod(_ easy: UnsafeMutableRawPointer) {
        if upload.hasBody {
            rp_set_long(easy, CURLOPT_UPLOAD, 1)
            rp_set_off(easy, CURLOPT_INFILESIZE_LARGE, upload.length ?? -1)
        }
        rp_set_string(easy, CURLOPT_CUSTOMREQUEST, request.head.method.rawValue)
        // Last: an upload would take it back.
        if request.head.method == .head { rp_set_long(easy, CURLOPT_NOBODY, 1) }
    }

    /// libcurl sends again by itself when a reused connection dies at once: right only for what may be repeated and can be rewound.
    /// A connection that authenticates itself belongs to one identity (security.md §4).
    private func setReuse(_ easy: UnsafeMutableRawPointer) {
        let scheme = request.head.fields[.authorization]?.prefix { $0 != " " }.lowercased()
        let isBoundToIdentity = scheme == "ntlm" || scheme == "negotiate"
        // A pooled connection is not checked again, and may lead where this client must not go.
        let isFresh = request.needsFreshConnection || upload.isStream || isBoundToIdentity || !request.allowsLoopback
        if isFresh { rp_set_long(easy, CURLOPT_FRESH_CONNECT, 1) }
        if isBoundToIdentity { rp_set_long(easy, CURLOPT_FORBID_REUSE, 1) }
    }

    private func setFields(_ easy: UnsafeMutableRawPointer) {
        var lines = ["Host: \(request.head.origin.authority)"]
        for field in request.head.fields where field.name != .hostField && field.name != .expect {
            let value = field.value
            lines.append(value.isEmpty ? "\(field.name.rawName);" : "\(field.name.rawName): \(value)")
        }
        // libcurl adds these by itself unless told not to.
        if !request.head.fields.contains(.accept) { lines.append("Accept:") }
        // Ours is the client's `100 Continue`, sent when its body is first wanted; libcurl would retry on a 417.
        lines.append("Expect:")
        if !upload.hasBody, ["POST", "PUT", "PATCH"].contains(request.head.method.rawValue) { lines.append("Content-Length: 0") }
        for line in lines { fieldList = curl_slist_append(fieldList, line) }
        rp_set_list(easy, CURLOPT_HTTPHEADER, fieldList)
        if request.via != nil {
            // libcurl's own `Proxy-Connection` means nothing (RFC 9112 appendix C.2.2).
            proxyFieldList = curl_slist_append(nil, "Proxy-Connection:")
            rp_set_list(easy, CURLOPT_PROXYHEADER, proxyFieldList)
        }
    }

    private func setTLS(_ easy: UnsafeMutableRawPointer) {
        guard request.head.origin.scheme == .https else { return }
        rp_set_long(easy, CURLOPT_SSL_VERIFYPEER, 1)
        rp_set_long(easy, CURLOPT_SSL_VERIFYHOST, 2)
        let version = request.tls.minVersion == "1.3" ? CURL_SSLVERSION_TLSv1_3 : CURL_SSLVERSION_TLSv1_2
        rp_set_long(easy, CURLOPT_SSLVERSION, Int(version))
        // The system's directory of hashed certificates stays beside the configured file.
        if let file = request.tls.caFile { rp_set_string(easy, CURLOPT_CAINFO, file) }
        if let file = request.tls.clientCert { rp_set_string(easy, CURLOPT_SSLCERT, file) }
        if let file = request.tls.clientKey { rp_set_string(easy, CURLOPT_SSLKEY, file) }
    }

    private func setCallbacks(_ easy: UnsafeMutableRawPointer, _ this: UnsafeMutableRawPointer) {
        rp_set_pointer(easy, CURLOPT_HEADERDATA, this)
        rp_set_data_callback(easy, CURLOPT_HEADERFUNCTION) { bytes, size, count, this in
            Transfer.of(this)?.receiveLine(UnsafeRawBufferPointer(start: bytes, count: size * count)) ?? 0
        }
        rp_set_pointer(easy, CURLOPT_WRITEDATA, this)
        rp_set_data_callback(easy, CURLOPT_WRITEFUNCTION) { bytes, size, count, this in
            Transfer.of(this)?.receiveBody(UnsafeRawBufferPointer(start: bytes, count: size * count)) ?? 0
        }
        rp_set_pointer(easy, CURLOPT_READDATA, this)
        rp_set_data_callback(easy, CURLOPT_READFUNCTION) { bytes, size, count, this in
            Transfer.of(this)?.supplyBody(UnsafeMutableRawBufferPointer(start: bytes, count: size * count)) ?? rp_readfunc_abort
        }
        rp_set_pointer(easy, CURLOPT_SEEKDATA, this)
        rp_set_seek_callback(easy) { this, offset, whence in
            Transfer.of(this)?.upload.rewind(to: Int64(offset), whence: whence) == true ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL
        }
        rp_set_pointer(easy, CURLOPT_OPENSOCKETDATA, this)
        rp_set_open_callback(easy) { this, _, address in
            guard let transfer = Transfer.of(this), let address else { return rp_socket_bad }
            return transfer.openSocket(address)
        }
    }

    private static func of(_ this: UnsafeMutableRawPointer?) -> Transfer? {
        this.map { Unmanaged<Transfer>.fromOpaque($0).takeUnretainedValue() }
    }

    // MARK: callbacks

    private func receiveLine(_ line: UnsafeRawBufferPointer) -> Int {
        lastProgress = .now
        do {
            switch try heads.receive(line) {
            case .more: break
            case .interim(let head): request.interim(head)
            case .final(let head, let length):
                isAnswered = true
                answered(.success(OriginReply(head: head, length: length, body: body, wire: wire)))
            }
            return line.count
        } catch {
            fault = TransferFailure(kind: .protocolError, sent: .yes, detail: error.detail)
            return 0
        }
    }

    private func receiveBody(_ bytes: UnsafeRawBufferPointer) -> Int {
        lastProgress = .now
        if body.isFull {
            isPausedByConsumer = true
            body.pause()
            return rp_writefunc_pause
        }
        body.offer(ByteBuffer(bytes: bytes))
        return bytes.count
    }

    private func supplyBody(_ target: UnsafeMutableRawBufferPointer) -> Int {
        lastProgress = .now
        switch upload.read(into: target) {
        case .bytes(let count): return count
        case .end: return 0
        case .empty: return rp_readfunc_pause
        case .failed:
            fault = TransferFailure(kind: .cancelled, sent: .maybe, detail: "the request body broke off")
            return rp_readfunc_abort
        }
    }

    /// The address libcurl resolved is judged at each attempt, so a name cannot change its mind in between (security.md §4).
    private func openSocket(_ address: UnsafeMutablePointer<curl_sockaddr>) -> curl_socket_t {
        // The C struct is longer than Swift's view of it: read the address where it stands, never copy it.
        let bytes = UnsafeRawPointer(address) + (MemoryLayout<curl_sockaddr>.offset(of: \.addr) ?? 0)
        let resolved = IPAddress(bytes, family: sa_family_t(address.pointee.family))
        if request.via == nil, let resolved, let reason = refusal(of: resolved, bytes) {
            deniedAddress = reason
            return rp_socket_bad
        }
        deniedAddress = nil
        return socket(address.pointee.family, address.pointee.socktype | Int32(SOCK_CLOEXEC.rawValue), address.pointee.`protocol`)
    }

    private func refusal(of address: IPAddress, _ sockaddr: UnsafeRawPointer) -> String? {
        if address.isLoopback, ownPorts.contains(IPAddress.port(sockaddr)) { return "the target is Rockpool itself" }
        return addresses.refusal(of: address, loopbackAllowed: request.allowsLoopback)
    }

    // MARK: end

    func unpause() {
        isPausedByConsumer = false
        lastProgress = .now
        if let easy { curl_easy_pause(easy, 0) }
    }

    /// Whether the upstream has been silent longer than it may, counted from the last sign of progress.
    func isOverdue(at now: ContinuousClock.Instant) -> Bool {
        guard let easy, !isPausedByConsumer, hasConnected(easy), !upload.isStarved else { return false }
        // Time spent waiting for a connection is not the upstream's silence.
        if !isConnectionSeen {
            isConnectionSeen = true
            lastProgress = now
        }
        let limit = isAnswered ? request.timeouts.idle : request.timeouts.firstByte
        return now - lastProgress > .milliseconds(limit.milliseconds)
    }

    private func hasConnected(_ easy: UnsafeMutableRawPointer) -> Bool {
        var microseconds: Int64 = 0
        rp_get_off(easy, CURLINFO_PRETRANSFER_TIME_T, &microseconds)
        return microseconds > 0
    }

    /// Tells the sender how it ended: before the head as a failure, after it by ending the body.
    func conclude(_ code: CURLcode) {
        if code == CURLE_OK, fault == nil, isAnswered {
            body.finish()
            upload.abandon()
        } else {
            fail(with: fault ?? CurlFailure.of(code, transfer: evidence))
        }
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

    /// What has left so far, and on what connection.
    private var wire: WireEvidence? {
        guard let easy else { return nil }
        var (headBytes, connects) = (0, 0)
        var bodyBytes: Int64 = 0
        rp_get_long(easy, CURLINFO_REQUEST_SIZE, &headBytes)
        rp_get_long(easy, CURLINFO_NUM_CONNECTS, &connects)
        rp_get_off(easy, CURLINFO_SIZE_UPLOAD_T, &bodyBytes)
        return WireEvidence(bytesSent: Int64(headBytes) + bodyBytes, isFreshConnection: connects > 0)
    }

    private var evidence: CurlFailure.Evidence {
        guard let easy else { return .init() }
        var headBytes = 0
        rp_get_long(easy, CURLINFO_REQUEST_SIZE, &headBytes)
        return .init(
            hasConnected: hasConnected(easy), headBytesSent: headBytes, isBodySent: upload.isExhausted, isAnswered: isAnswered,
            isCancelled: isCancelled, denied: deniedAddress, text: String(cString: errorText),
            wire: wire)
    }

    /// The socket of its connection, where that is kept for a next HTTP/1 request. HTTP/2 has more to say than answers.
    var pooledSocket: curl_socket_t? {
        guard let easy else { return nil }
        var version = 0
        rp_get_long(easy, CURLINFO_HTTP_VERSION, &version)
        guard version < Int(CURL_HTTP_VERSION_2_0) else { return nil }
        let socket = rp_get_socket(easy)
        return socket == rp_socket_bad ? nil : socket
    }

    /// Ends the handle; the thread has let go of it.
    func release() {
        guard let easy else { return }
        self.easy = nil
        curl_easy_cleanup(easy)
        curl_slist_free_all(fieldList)
        curl_slist_free_all(proxyFieldList)
        (fieldList, proxyFieldList) = (nil, nil)
        Unmanaged.passUnretained(self).release()
    }
}
