// Calls of gRPC within a decrypted tunnel: they move to a tunnel that is passed on as it is (docs/guide/programs.md#grpc).
import HTTPTypes
import Logging
import NIOCore
import RockpoolCore
import RockpoolEngine

extension ConnectionHandler {
    /// Refuses the stream of a call before anything of it is processed, so that its client repeats it on a new connection, which is not
    /// decrypted (RFC 9113 §8.7): calls with trailers and streams in both directions need the host's own connection.
    /// - Returns: False for any other request, and while the host cannot be reached: then the call is answered here.
    func leavesToTunnel(_ incoming: IncomingHead, context: ChannelHandlerContext) -> Bool {
        guard wire == .stream, case .intercepted(let origin) = service.resolution.role, RemoteCall.isMade(by: incoming.fields),
            service.engine.refusalToConnect(to: origin) == nil, let connection = context.channel.parent
        else { return false }
        let client = HandshakeHandler.client(of: connection)
        let noted = service.engine.untrusting.note(
            host: origin.host, client: client, at: service.engine.now(), alert: UntrustingClient.calls, mayBypass: true)
        if noted.isNews { service.logger.notice("\(client) calls \(origin.host) by gRPC: its tunnels there are passed undecrypted") }
        isLeaving = true
        connection.pipeline.fireUserInboundEventTriggered(DrainEvent())
        let me = NIOLoopBound(self, eventLoop: context.eventLoop)
        // After GOAWAY, which shows the client that this connection takes no further stream.
        let loop = context.eventLoop
        loop.execute {
            loop.execute {
                guard let context = me.value.context, context.channel.isActive else { return }
                context.triggerUserOutboundEvent(StreamGate.Refuse(), promise: nil)
            }
        }
        return true
    }
}
