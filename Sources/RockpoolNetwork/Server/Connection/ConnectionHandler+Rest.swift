// Idle connections that leave their channel (docs/security-model.md#idle-connections).
import Glibc
import NIOCore
import RockpoolEngine

extension ConnectionHandler {
    /// Closes the channel of an idle connection whose socket `RestingConnections` keeps.
    /// - Returns: false if the connection needs its channel.
    func rests(context: ChannelHandlerContext) -> Bool {
        let pipeline = context.pipeline.syncOperations
        guard let open, mayAnswerAtOnce(context: context), !isInputClosed, !holdsBytes, !opensTunnel, keepsNothing(context.channel),
            let copy = try? pipeline.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self, { fcntl($0, F_DUPFD_CLOEXEC, 0) }), copy >= 0
        else { return false }
        let guest = RestingConnections.Guest(
            connection: open, socket: copy, service: service, loop: context.eventLoop, requests: requests, since: timer.since)
        guard service.connections.rests(open) else {
            Glibc.close(copy)
            return false
        }
        // The kernel's connection stays open with the copy.
        context.channel.close(promise: nil)
        service.resting.take(guest)
        return true
    }

    /// True if no byte of the client waits in a handler, and no byte of a reply in the channel.
    private func keepsNothing(_ channel: any Channel) -> Bool {
        let pipeline = channel.pipeline.syncOperations
        guard let fastPath = try? pipeline.handler(type: FastPathHandler.self), fastPath.isEmpty else { return false }
        if let preface = try? pipeline.handler(type: PriorKnowledgeHandler.self), !preface.isEmpty { return false }
        return (try? channel.syncOptions?.getOption(.bufferedWritableBytes)) == 0
    }
}
