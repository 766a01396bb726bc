// Idle connections that leave their channel (docs/security-model.md#idle-connections).
import Glibc
import NIOCore
import RockpoolEngine

/// A connection of HTTP/1 without TLS whose client has sent nothing for a while.
struct IdleConnection {
    let connection: ConnectionHandler
    let channel: any Channel

    /// Closes the channel; `RestingConnections` keeps the socket.
    /// - Returns: false if the connection needs its channel.
    func rests(context: ChannelHandlerContext) -> Bool {
        let service = connection.service
        guard let open = connection.open, connection.mayAnswerAtOnce(context: context), !connection.isInputClosed, !connection.holdsBytes,
            !connection.opensTunnel, isEmpty, let socket = duplicate
        else { return false }
        let guest = RestingConnections.Guest(
            connection: open, socket: socket, service: service, loop: channel.eventLoop, requests: connection.requests,
            since: connection.timer.since)
        guard service.connections.rests(open) else {
            close(socket)
            return false
        }
        // The kernel's connection stays open with the duplicate.
        channel.close(promise: nil)
        service.resting.take(guest)
        return true
    }

    /// True if no byte of the client waits in a handler, and no byte of a reply in the channel.
    private var isEmpty: Bool {
        guard let fastPath = try? channel.pipeline.syncOperations.handler(type: FastPathHandler.self), fastPath.isEmpty else {
            return false
        }
        return (try? channel.syncOptions?.getOption(.bufferedWritableBytes)) == 0
    }

    /// Another descriptor of its socket; nil where none is left.
    private var duplicate: CInt? {
        let copy = try? channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
            fcntl($0, F_DUPFD_CLOEXEC, 0)
        }
        return copy.flatMap { $0 >= 0 ? $0 : nil }
    }
}
