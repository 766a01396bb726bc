// Connections to upstreams for calls, under the rules of tunnels (RFC 7301, RFC 9113 §3.2).
import NIOCore
import NIOSSL
import NIOTLS
import RockpoolCore
import RockpoolEngine

extension TunnelDialer {
    /// Opens a connection of HTTP/2: chosen within TLS, known beforehand without it. Fails with `TransferFailure` or the socket's error.
    /// - Parameter memory: the client's share of the memory for bodies.
    func connectForCalls(
        to origin: OriginAddress, isLocalClient: Bool, client: ClientID?, memory: @escaping @Sendable () -> SharedBudget.Share?,
        on loop: any EventLoop
    ) -> EventLoopFuture<NIOLoopBound<CallConnection>> {
        let settings = engine.upstream(for: origin)?.tls ?? TLSSettings()
        let context: EventLoopFuture<NIOSSLContext?> =
            origin.scheme == .https ? settings.clientContext(offering: ["h2"], on: loop).map { $0 } : loop.makeSucceededFuture(nil)
        return context.flatMap { context in
            dial(origin, isLocalClient: isLocalClient, client: client, isCall: true, on: loop) { channel in
                channel.eventLoop.makeCompletedFuture {
                    if let context { try channel.speakTLS(with: origin.host, context: context) }
                }
            }.flatMap { channel in
                let ready = loop.makePromise(of: NIOLoopBound<CallConnection>.self)
                let install = { @Sendable in
                    NIOLoopBound(try CallConnection.install(on: channel, memory: memory), eventLoop: loop)
                }
                do {
                    if context == nil {
                        ready.succeed(try install())
                    } else {
                        try channel.pipeline.syncOperations.addHandler(
                            ProtocolChoice(within: connectTimeout) { ready.completeWith($0.flatMap { _ in Result(catching: install) }) })
                    }
                } catch {
                    ready.fail(error)
                }
                ready.futureResult.whenFailure { _ in channel.close(promise: nil) }
                return channel.setOption(.autoRead, value: true).flatMap {
                    channel.read()
                    return ready.futureResult
                }
            }
        }
    }
}

/// Waits for the end of the handshake, in which the upstream must choose HTTP/2.
private final class ProtocolChoice: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let limit: TimeSpan
    private var done: ((Result<Void, any Error>) -> Void)?
    private var timer: Scheduled<Void>?

    init(within limit: TimeSpan, _ done: @escaping (Result<Void, any Error>) -> Void) { (self.limit, self.done) = (limit, done) }

    func handlerAdded(context: ChannelHandlerContext) {
        let me = NIOLoopBound(self, eventLoop: context.eventLoop)
        timer = context.eventLoop.scheduleTask(in: .milliseconds(limit.milliseconds)) {
            me.value.finish(.failure(TransferFailure(kind: .connectTimeout, sent: .no, detail: "no end of the TLS handshake")))
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) { timer?.cancel() }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case TLSUserEvent.handshakeCompleted(let negotiated)? = event as? TLSUserEvent else {
            return context.fireUserInboundEventTriggered(event)
        }
        if negotiated == "h2" {
            finish(.success(()))
            context.pipeline.syncOperations.removeHandler(self, promise: nil)
        } else {
            finish(
                .failure(TransferFailure(kind: .protocolError, sent: .no, detail: "it does not speak HTTP/2, which gRPC needs")))
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        finish(.failure(TransferFailure(kind: .reset, sent: .no, detail: "the connection ended during the TLS handshake")))
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { finish(.failure(TransferFailure(connecting: error))) }

    private func finish(_ result: Result<Void, any Error>) {
        timer?.cancel()
        done?(result)
        done = nil
    }
}
