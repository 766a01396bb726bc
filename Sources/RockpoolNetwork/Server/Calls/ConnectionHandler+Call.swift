// Calls of gRPC on the streams of a client: each goes on on a stream of its upstream (docs/guide/programs.md#grpc).
import HTTPTypes
import NIOCore
import NIOHTTP2
import RockpoolCore
import RockpoolEngine

extension ConnectionHandler {
    /// Hands the stream of a call over to a stream of its upstream: nothing of a call is stored, and its messages go both ways at once.
    /// - Returns: False for any other request.
    ///
    /// Throws `Refusal` for invalid `Rockpool-` fields.
    func relaysCall(
        _ request: RequestHead, incoming: IncomingHead, passage: GatewayPassage?, context: ChannelHandlerContext
    ) throws(Refusal) -> Bool {
        guard wire == .stream, request.method == .post, RemoteCall.isMade(by: incoming.fields),
            let connections = try? CallConnections.of(context.channel, service: service, account: account)
        else { return false }
        var exchange = Exchange(request: request, isLocalClient: isClientLocal(context.channel), account: account)
        exchange.forwarded =
            passage?.forwarded(from: context.channel.remoteAddress?.ipAddress, listener: service.resolution.listener) ?? [:]
        exchange.gateway = passage?.address
        let call = try PassedCall(exchange, by: service.engine)
        isLeaving = true
        timer.cancel()
        let relay = RelayedCall(call, over: connections, isLocalClient: exchange.isLocalClient)
        do {
            try relay.begin(on: context.channel, isWhole: incoming.framing == .none)
            context.pipeline.syncOperations.removeHandler(self, promise: nil)
        } catch {
            context.close(promise: nil)
        }
        return true
    }
}
