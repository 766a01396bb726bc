// Calls of gRPC within a decrypted tunnel: they move to a tunnel that is passed on as it is (docs/guide/programs.md#grpc).
import HTTPTypes
import Logging
import NIOCore
import NIOHTTP2
import RockpoolCore
import RockpoolEngine

extension ConnectionHandler {
    /// Ends the connection before anything of a call is processed, so that its client repeats the call on a new connection, which is not
    /// decrypted (RFC 9113 §6.8): calls with trailers and streams in both directions need the host's own connection.
    /// - Returns: False for any other request, for a declared upstream, which no request may take out of decryption, and while the host
    ///   cannot be reached: then the call is answered here.
    func leavesToTunnel(_ incoming: IncomingHead, context: ChannelHandlerContext) -> Bool {
        guard wire == .stream, case .intercepted(let origin) = service.resolution.role, RemoteCall.isMade(by: incoming.fields),
            service.engine.configuration.interception(host: origin.host, port: origin.port).yields,
            service.engine.refusalToConnect(to: origin) == nil, let connection = context.channel.parent,
            let stream = try? context.channel.syncOptions?.getOption(HTTP2StreamChannelOptions.streamID)
        else { return false }
        let client = HandshakeHandler.client(of: connection)
        let noted = service.engine.untrusting.note(
            host: origin.host, client: client, at: service.engine.now(), alert: UntrustingClient.calls, mayBypass: true)
        if noted.isNews { service.logger.notice("\(client) calls \(origin.host) by gRPC: its tunnels there are passed undecrypted") }
        isLeaving = true
        let loop = context.eventLoop
        // Deferred, because the frame is in processing.
        loop.execute { connection.pipeline.fireUserInboundEventTriggered(StreamCount.Unprocessed(stream: stream)) }
        return true
    }
}
