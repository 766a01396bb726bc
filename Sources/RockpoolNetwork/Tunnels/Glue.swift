// Two joined channels: bytes flow at the rate of the slower side, and the end of one side is forwarded to the other.
import NIOCore
import NIOHTTP1
import NIOPosix
import RockpoolCore
import RockpoolEngine

/// One half of a tunnel. Reads from its channel only while its peer is writable.
final class Glue: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// True if this side's bytes are forwarded; a refused upgrade forwards only the answer's direction.
    private let forwards: Bool
    private var peer: Glue?
    private var context: ChannelHandlerContext?
    private var isReadPending = false
    private var isInputClosed = false
    /// The place of the tunnel among the exchanges under way.
    private let place: ExchangePlace?

    private init(forwards: Bool, at place: ExchangePlace?) { (self.forwards, self.place) = (forwards, place) }

    /// Joins two channels of one event loop. Each gets this handler at the end of its pipeline.
    ///
    /// - Parameters:
    ///   - place: of the tunnel; released when the client's channel has closed.
    ///   - idle: the tunnel closes after this time without data.
    ///   - isOneWay: the client's bytes are dropped.
    ///   - clientHasEnded: true if the client closed its side while the other was being dialled.
    static func join(
        _ client: any Channel, with upstream: any Channel, at place: ExchangePlace?, idle: TimeSpan, isOneWay: Bool = false,
        clientHasEnded: Bool = false
    ) throws {
        let (near, far) = (Glue(forwards: !isOneWay, at: place), Glue(forwards: true, at: place))
        near.peer = far
        far.peer = near
        let timeout = IdleStateHandler(allTimeout: .milliseconds(idle.milliseconds))
        try client.pipeline.syncOperations.addHandlers([timeout, near])
        try upstream.pipeline.syncOperations.addHandler(far)
        near.isInputClosed = clientHasEnded
        if clientHasEnded { far.context?.close(mode: .output, promise: nil) }
        near.context?.read()
        if let place {
            place.opened { client.close(promise: nil) }
            client.closeFuture.whenComplete { _ in place.release() }
        }
        upstream.setOption(.autoRead, value: true).whenSuccess { upstream.read() }
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        peer = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        place?.noteUse()
        // Flushed at once: the decoder's leftover bytes arrive without a `channelReadComplete`.
        if forwards { peer?.context?.writeAndFlush(NIOAny(unwrapInboundIn(data)), promise: nil) }
    }

    func read(context: ChannelHandlerContext) {
        if let other = peer?.context, !other.channel.isWritable { isReadPending = true } else { context.read() }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable { peer?.resume() }
        context.fireChannelWritabilityChanged()
    }

    private func resume() {
        guard isReadPending else { return }
        isReadPending = false
        context?.read()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case let event as ChannelEvent where event == .inputClosed:
            isInputClosed = true
            endInput(context: context)
        case is IdleStateHandler.IdleStateEvent: context.close(promise: nil)
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    /// This side has sent its last byte. When both have, everything written is flushed before either closes.
    private func endInput(context: ChannelHandlerContext) {
        guard let peer, let other = peer.context else { return context.close(promise: nil) }
        guard peer.isInputClosed else { return other.close(mode: .output, promise: nil) }
        let (here, there) = (context.channel, other.channel)
        there.writeAndFlush(ByteBuffer()).whenComplete { _ in
            here.writeAndFlush(ByteBuffer()).whenComplete { _ in
                there.close(promise: nil)
                here.close(promise: nil)
            }
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        peer?.context?.close(promise: nil)
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}

extension ChannelPipeline.SynchronousOperations {
    /// Removes the request decoder; its unparsed bytes are passed down the pipeline.
    func removeRequestDecoder() throws {
        let context = try context(handlerType: ByteToMessageHandler<HTTPRequestDecoder>.self)
        removeHandler(context: context, promise: nil)
    }
}

/// Added to the connection to the host; records the tunnel when that has closed.
final class TunnelMeter: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var tunnel: TunnelRecord
    private let at: Timestamp
    private let began = ContinuousClock.now
    private let log: TunnelLog
    private var isNoted = false

    init(_ begun: (record: TunnelRecord, at: Timestamp), in log: TunnelLog) { (tunnel, at, self.log) = (begun.record, begun.at, log) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        tunnel.received += Int64(unwrapInboundIn(data).readableBytes)
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        tunnel.sent += Int64(unwrapOutboundIn(data).readableBytes)
        context.write(data, promise: promise)
    }

    func channelInactive(context: ChannelHandlerContext) {
        note()
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) { note() }

    private func note() {
        guard !isNoted else { return }
        isNoted = true
        tunnel.took = ContinuousClock.now - began
        log.note(tunnel, at: at)
    }
}
