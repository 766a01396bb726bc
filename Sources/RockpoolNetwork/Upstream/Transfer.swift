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
            body.finish(trailers)
            upload.abandon()
            measure()
        } else {
            fail(with: fault ?? CurlFailure.of(code, transfer: evidence))
        }
    }

    /// The fields after the body, if the client accepts them.
    private var trailers: HTTPFields {
        guard request.head.fields.contains(.te) else { return [:] }
        for line in chunks?.trailers ?? [] { heads.takeTrailer(line) }
        return Trailers.forwardable(heads.trailers)
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
