// The connections to upstreams for the calls of one client's connection (docs/guide/programs.md#grpc).
import NIOCore
import NIOHTTP2
import RockpoolCore
import RockpoolEngine

/// Gives the calls of a connection one connection to each of their upstreams, as they would have without a proxy: clients share none, so that
/// none waits for another's windows, streams or pings. On the event loop only.
final class CallConnections: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame
    typealias InboundOut = HTTP2Frame

    let loop: any EventLoop
    private let service: ConnectionService
    private let account: ClientAccount?
    /// Those that take further calls.
    private var connections: [OriginAddress: EventLoopFuture<NIOLoopBound<CallConnection>>] = [:]
    /// Calls under way.
    private var calls = 0
    private var context: ChannelHandlerContext?

    private init(service: ConnectionService, account: ClientAccount?, on loop: any EventLoop) {
        (self.service, self.account, self.loop) = (service, account, loop)
    }

    /// Returns those of the connection of a stream; the first call adds them.
    static func of(_ stream: any Channel, service: ConnectionService, account: ClientAccount?) throws -> CallConnections? {
        guard let pipeline = stream.parent?.pipeline.syncOperations else { return nil }
        if let known = try? pipeline.handler(type: CallConnections.self) { return known }
        let new = CallConnections(service: service, account: account, on: stream.eventLoop)
        // A connection on which nothing passes for as long as a tunnel may be silent is closed, if a call is under way.
        let limit = IdleStateHandler(allTimeout: .milliseconds(service.timeouts.tunnel.milliseconds))
        try pipeline.addHandlers([limit, new], position: .after(pipeline.handler(type: StreamCount.self)))
        return new
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func began() { calls += 1 }

    func ended() { calls -= 1 }

    /// Returns the connection to an upstream; opens one if there is none.
    func connection(to origin: OriginAddress, isLocalClient: Bool) -> EventLoopFuture<NIOLoopBound<CallConnection>> {
        if let known = connections[origin] { return known }
        let opened = service.dialer.connectForCalls(
            to: origin, isLocalClient: isLocalClient, client: account?.client, memory: { [account] in account?.memory }, on: loop)
        connections[origin] = opened
        let me = NIOLoopBound(self, eventLoop: loop)
        opened.whenComplete { result in
            switch result {
            case .success(let connection) where me.value.context == nil: connection.value.close()
            case .success(let connection): connection.value.onLeaving { me.value.connections[origin] = nil }
            case .failure: me.value.connections[origin] = nil
            }
        }
        return opened
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // The client asks whether its upstream is there: then that is asked, too (RFC 9113 §6.7).
        if case .ping(_, ack: false) = unwrapInboundIn(data).payload {
            for connection in connections.values { connection.whenSuccess { $0.value.ping() } }
        }
        context.fireChannelRead(data)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard event is IdleStateHandler.IdleStateEvent else { return context.fireUserInboundEventTriggered(event) }
        if calls > 0 { context.close(promise: nil) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        for connection in connections.values { connection.whenSuccess { $0.value.close() } }
        connections = [:]
        self.context = nil
        context.fireChannelInactive()
    }
}
