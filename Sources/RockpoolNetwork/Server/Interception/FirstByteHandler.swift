// Detection of the first bytes in a tunnel to be decrypted: a TLS handshake, or data that cannot be decrypted (RFC 8446 §5.1).
import Logging
import NIOCore
import NIOTLS
import RockpoolCore
import RockpoolEngine

/// Inspects the first byte within a tunnel to a host that is to be decrypted. A handshake is passed to TLS. Anything else, such as `ws://`,
/// which browsers also send through CONNECT, is forwarded to the host byte by byte: nothing of it can be cached, and closing the tunnel
/// would break a connection that works without the proxy.
final class FirstByteHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer

    /// The record type of a handshake, with which every ClientHello begins.
    static let handshake: UInt8 = 22

    /// The target of the CONNECT request.
    private let origin: OriginAddress
    private let service: ConnectionService
    private let isLocalClient: Bool
    private let hello: SNIHandler
    private let open: OpenConnection?
    /// The place of a tunnel among the exchanges under way.
    private var place: ExchangePlace?
    /// Bytes that wait for the connection to the host; nil before non-TLS data is detected, and after that connection is open.
    private var held: ByteBuffer?
    private var isInputClosed = false
    private var context: ChannelHandlerContext?

    /// - Parameter hello: receives the bytes of a handshake.
    init(_ hello: SNIHandler, origin: OriginAddress, service: ConnectionService, isLocalClient: Bool, open: OpenConnection?) {
        self.hello = hello
        self.open = open
        self.origin = origin
        self.service = service
        self.isLocalClient = isLocalClient
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        guard held == nil else {
            held?.writeBuffer(&bytes)
            return
        }
        guard let first = bytes.readableBytesView.first else { return }
        do {
            let pipeline = context.pipeline.syncOperations
            if first == Self.handshake {
                try pipeline.addHandler(ByteToMessageHandler(hello), position: .after(self))
                context.fireChannelRead(data)
                return pipeline.removeHandler(self, promise: nil)
            }
            held = bytes
            try pipeline.removeHandler(context: pipeline.context(handlerType: HandshakeHandler.self), promise: nil)
            dial(context: context)
        } catch {
            context.close(promise: nil)
        }
    }

    /// While the host is dialled, further bytes of the client stay in the socket.
    func read(context: ChannelHandlerContext) { if held == nil { context.read() } }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if held != nil, let event = event as? ChannelEvent, event == .inputClosed { isInputClosed = true }
        context.fireUserInboundEventTriggered(event)
    }

    private func dial(context: ChannelHandlerContext) {
        do throws(Refusal) { place = try open?.place(.tunnel) } catch { return dialed(.failure(error)) }
        let me = NIOLoopBound(self, eventLoop: context.eventLoop)
        let dialed = service.dialer.connect(
            host: origin.host, port: origin.port, isLocalClient: isLocalClient, client: open?.account?.client, on: context.eventLoop)
        dialed.whenComplete { me.value.dialed($0) }
    }

    private func dialed(_ result: Result<any Channel, any Error>) {
        guard let context, let held else {
            if case .success(let peer) = result { peer.close(promise: nil) }
            return
        }
        self.held = nil
        switch result {
        case .success(let peer):
            do {
                peer.writeAndFlush(held, promise: nil)
                try Glue.join(context.channel, with: peer, at: place, idle: service.timeouts.tunnel, clientHasEnded: isInputClosed)
                context.pipeline.syncOperations.removeHandler(self, promise: nil)
                // The peer closed before it was joined.
                if !peer.isActive { context.close(promise: nil) }
            } catch {
                peer.close(promise: nil)
                context.close(promise: nil)
            }
        case .failure(let error):
            // The client has already received the 200 of CONNECT, so no error can be sent to it.
            let detail = (error as? Refusal)?.detail ?? TransferFailure(connecting: error).detail
            service.logger.notice("\(origin.hostAndPort) was sent no TLS, and cannot be reached: \(detail)")
            context.close(promise: nil)
        }
    }
}
