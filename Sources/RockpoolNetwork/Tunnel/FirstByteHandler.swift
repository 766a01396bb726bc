// What a tunnel that is to be decrypted turns out to hold: a TLS handshake, or something that nobody can decrypt (RFC 8446 §5.1).
import Logging
import NIOCore
import NIOTLS
import RockpoolCore

/// Looks at the first byte within a tunnel to a host that is to be decrypted. A handshake goes to TLS. Anything else, such as `ws://`,
/// which browsers send through CONNECT too, is passed to the host byte by byte: it was to be reached through this tunnel, nothing of it
/// can be cached, and to cut it off would break what works without us.
final class FirstByteHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer

    /// The record type of a handshake, with which every ClientHello begins.
    static let handshake: UInt8 = 22

    /// What CONNECT asked for.
    private let origin: OriginAddress
    private let service: ConnectionService
    private let isLocalClient: Bool
    private let hello: SNIHandler
    /// What waits for its far side; nil until it is known to be no TLS, and again when that side is there.
    private var held: ByteBuffer?
    private var isInputClosed = false
    private var context: ChannelHandlerContext?

    /// - Parameter hello: gets the bytes of a handshake.
    init(_ hello: SNIHandler, origin: OriginAddress, service: ConnectionService, isLocalClient: Bool) {
        self.hello = hello
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
            dial(context)
        } catch {
            context.close(promise: nil)
        }
    }

    /// What more the client sends waits in the socket meanwhile.
    func read(context: ChannelHandlerContext) { if held == nil { context.read() } }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if held != nil, let event = event as? ChannelEvent, event == .inputClosed { isInputClosed = true }
        context.fireUserInboundEventTriggered(event)
    }

    private func dial(_ context: ChannelHandlerContext) {
        let me = NIOLoopBound(self, eventLoop: context.eventLoop)
        let dialed = service.dialer.connect(host: origin.host, port: origin.port, isLocalClient: isLocalClient, on: context.eventLoop)
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
                try Glue.join(context.channel, peer, idle: service.timeouts.tunnel, clientHasEnded: isInputClosed)
                context.pipeline.syncOperations.removeHandler(self, promise: nil)
                // Gone again before anybody listened to it.
                if !peer.isActive { context.close(promise: nil) }
            } catch {
                peer.close(promise: nil)
                context.close(promise: nil)
            }
        case .failure(let error):
            // It was told that its tunnel stands; there is no word left that it would understand.
            let detail = (error as? Refusal)?.detail ?? TransferFailure(connecting: error).detail
            service.logger.notice("\(origin.hostAndPort) was sent no TLS, and cannot be reached: \(detail)")
            context.close(promise: nil)
        }
    }
}
