// Counts what passes through a tunnel, at its far side.
import NIOCore
import RockpoolCore
import RockpoolEngine

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
