// TLS on the proxy's own listener, so that passwords of other machines are encrypted (docs/guide/clients.md#passwords).
import NIOCore
import RockpoolCore
import RockpoolEngine

/// Inspects the first byte of a connection: a TLS handshake, or requests. Then it leaves the pipeline.
final class EncryptedProxyHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let service: ConnectionService
    private let open: OpenConnection?
    private var timer: Scheduled<Void>?

    init(service: ConnectionService, open: OpenConnection?) { (self.service, self.open) = (service, open) }

    func handlerAdded(context: ChannelHandlerContext) {
        let channel = context.channel
        timer = context.eventLoop.scheduleTask(in: .milliseconds(service.timeouts.head.milliseconds)) { channel.close(promise: nil) }
    }

    func handlerRemoved(context: ChannelHandlerContext) { timer?.cancel() }

    func channelInactive(context: ChannelHandlerContext) {
        timer?.cancel()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard let first = unwrapInboundIn(data).readableBytesView.first else { return }
        do {
            if first == FirstByteHandler.handshake {
                try HandshakeHandler.beginListener(on: context.channel, service: service, open: open)
            } else {
                try service.installHTTP1(on: context.channel, open: open, wire: .plain)
            }
            context.fireChannelRead(data)
            context.pipeline.syncOperations.removeHandler(self, promise: nil)
        } catch {
            context.close(promise: nil)
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        // No request was sent yet.
        case is DrainEvent: context.close(promise: nil)
        case let event as ChannelEvent where event == .inputClosed: context.close(promise: nil)
        default: context.fireUserInboundEventTriggered(event)
        }
    }
}
