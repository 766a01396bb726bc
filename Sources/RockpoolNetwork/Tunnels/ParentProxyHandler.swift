// The handshake with a parent proxy at the beginning of a tunnel; afterwards the handler leaves the pipeline.
import CCurl
import Glibc
import NIOCore
import NIOPosix
import RockpoolCore
import RockpoolEngine

/// Completes its promise when the tunnel is established.
final class ParentProxyHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var talk: ParentProxyTalk
    private var promise: EventLoopPromise<Void>?
    private let limit: TimeAmount
    private var timer: Scheduled<Void>?

    /// - Parameter limit: the time limit of the whole handshake.
    init(_ talk: ParentProxyTalk, within limit: TimeAmount, _ promise: EventLoopPromise<Void>) {
        self.talk = talk
        self.limit = limit
        self.promise = promise
    }

    func handlerAdded(context: ChannelHandlerContext) {
        let me = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        timer = context.eventLoop.scheduleTask(in: limit) {
            let (handler, context) = me.value
            handler.fail("the parent proxy did not answer in time", as: .connectTimeout, context: context)
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        timer?.cancel()
        finish(.failure(ChannelError.ioOnClosedChannel))
    }

    func channelActive(context: ChannelHandlerContext) {
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: talk.begin())), promise: nil)
        context.fireChannelActive()
        context.read()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch talk.receive(unwrapInboundIn(data).readableBytesView) {
        case .more: break
        case .send(let bytes): context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: nil)
        case .failed(let detail): fail(detail, context: context)
        case .established(let early):
            timer?.cancel()
            let promise = promise
            self.promise = nil
            // The promise installs the next handlers first, so that they receive the early bytes.
            promise?.succeed()
            if !early.isEmpty { context.fireChannelRead(wrapInboundOut(ByteBuffer(bytes: early))) }
            context.pipeline.syncOperations.removeHandler(self, promise: nil)
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if promise != nil { context.read() }
        context.fireChannelReadComplete()
    }

    func channelInactive(context: ChannelHandlerContext) {
        fail("the parent proxy closed the connection", context: context)
        context.fireChannelInactive()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if promise != nil, let event = event as? ChannelEvent, event == .inputClosed {
            return fail("the parent proxy closed the connection", context: context)
        }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        let failure = TransferFailure(connecting: error)
        fail("no connection to the parent proxy: \(failure.detail)", as: failure.kind, context: context)
    }

    private func fail(_ detail: String, as kind: TransferFailure.Kind = .reset, context: ChannelHandlerContext) {
        guard promise != nil else { return }
        finish(.failure(TransferFailure(kind: kind, sent: .no, detail: detail)))
        context.close(promise: nil)
    }

    private func finish(_ result: Result<Void, any Error>) {
        promise?.completeWith(result)
        promise = nil
    }
}

/// A tunnel to be opened by libcurl (RFC 4559, RFC 9110 §9.3.6).
struct NegotiatedTunnel: Sendable {
    let parent: ParentProxy
    let credential: ParentCredential
    let host: String
    let port: Int

    /// Each handshake occupies a thread.
    private static let threads: NIOThreadPool = {
        let threads = NIOThreadPool(numberOfThreads: 4)
        threads.start()
        return threads
    }()

    /// Returns the descriptor of the connection, for the caller to close. Fails with `TransferFailure`.
    func open(within limit: TimeSpan, on loop: any EventLoop) -> EventLoopFuture<CInt> {
        Self.threads.runIfActive(eventLoop: loop) { try connect(within: limit) }
    }

    private func connect(within limit: TimeSpan) throws(TransferFailure) -> CInt {
        // The state of TLS to the parent would stay in libcurl.
        guard parent.kind == .http else {
            throw failure(.denied, "tunnels with \(credential.auth.rawValue) need a parent proxy by http://")
        }
        guard let easy = EasyHandle() else { throw failure(.reset, "no memory for a connection") }
        defer { easy.cleanUp() }
        let text = CurlErrorText()
        text.attach(to: easy)
        easy.set(CURLOPT_NOSIGNAL, 1)
        easy.set(CURLOPT_PROXY, "http://\(parent.address)")
        easy.set(CURLOPT_NOPROXY, "")
        easy.set(credential)
        easy.set(CURLOPT_HTTPPROXYTUNNEL, 1)
        easy.set(CURLOPT_CONNECT_ONLY, 1)
        easy.set(CURLOPT_URL, "http://\(host.contains(":") ? "[\(host)]" : host):\(port)/")
        easy.set(CURLOPT_CONNECTTIMEOUT_MS, Int(clamping: limit.milliseconds))
        easy.set(CURLOPT_TIMEOUT_MS, Int(clamping: limit.milliseconds))
        let code = unsafe curl_easy_perform(easy.raw)
        let status = easy.number(CURLINFO_HTTP_CONNECTCODE)
        guard code == CURLE_OK, let socket = easy.socket else {
            if status >= 300 { throw failure(.reset, "the parent proxy answered \(status)") }
            let kind: TransferFailure.Kind = code == CURLE_OPERATION_TIMEDOUT ? .connectTimeout : .reset
            throw failure(kind, "no tunnel through the parent proxy: \(text.text)")
        }
        // libcurl closes its own descriptor; the connection stays open through the copy.
        let copy = fcntl(socket, F_DUPFD_CLOEXEC, 0)
        guard copy >= 0 else { throw failure(.reset, "too many open files") }
        return copy
    }

    private func failure(_ kind: TransferFailure.Kind, _ detail: String) -> TransferFailure {
        TransferFailure(kind: kind, sent: .no, detail: detail)
    }
}
