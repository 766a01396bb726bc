// Idle client connections, which leave their channel and rest without one (docs/security-model.md#idle-connections; epoll(7)).
import CEpoll
import Dispatch
import Glibc
import NIOCore
import NIOPosix
import RockpoolEngine
import Synchronization

/// Keeps the sockets of idle connections, and gives a connection a channel again when its client sends.
final class RestingConnections: ConnectionRest, Sendable {
    /// How long a connection is idle before it rests for the first time: longer than the pauses of a client at work.
    static let patience = TimeAmount.seconds(1)
    /// The longest time that a connection is idle before it rests.
    private static let longestPatience = TimeAmount.seconds(15)

    /// What a connection that has rested keeps.
    struct Past {
        /// The requests that it has had.
        let requests: Int
        /// How long it is idle before it rests again.
        let patience: TimeAmount
    }

    /// A connection that rests.
    struct Guest {
        let connection: OpenConnection
        let socket: CInt
        let service: any RestingService
        let loop: any EventLoop
        let requests: Int
        /// Since when it is idle.
        let since: NIODeadline

        /// When it has been idle for too long.
        fileprivate var deadline: NIODeadline { since + service.idleLimit }

        /// A client that asks again and again with pauses keeps its channel, because a new one for each request costs more than the request.
        fileprivate var past: Past {
            Past(requests: requests, patience: min(2 * (.now() - since) + patience, longestPatience))
        }

        fileprivate var key: UInt { Self.key(of: connection) }

        fileprivate static func key(of connection: OpenConnection) -> UInt { UInt(bitPattern: ObjectIdentifier(connection)) }
    }

    private struct State {
        var guests: [UInt: Guest] = [:]
        var isSweepDue = false
        var hasEnded = false
    }

    private let state = Mutex(State())
    /// Becomes readable when a client has sent something, or has left.
    private let epoll = epoll_create1(CInt(EPOLL_CLOEXEC))
    private let queue = DispatchQueue(label: "rockpool.resting")
    private nonisolated(unsafe) let source: any DispatchSourceRead

    init() {
        let epoll = epoll
        unsafe source = DispatchSource.makeReadSource(fileDescriptor: epoll, queue: queue)
        unsafe source.setCancelHandler { close(epoll) }
        unsafe source.setEventHandler { [weak self] in self?.look() }
        unsafe source.activate()
    }

    deinit {
        endAll()
        unsafe source.cancel()
    }

    var count: Int { state.withLock { $0.guests.count } }

    /// Takes a connection with its socket, which this object will close or give to a channel.
    func take(_ guest: Guest) {
        let (isTaken, isFirst) = state.withLock { state in
            guard guest.connection.isOpen, !state.hasEnded, watch(guest) else { return (false, false) }
            state.guests[guest.key] = guest
            defer { state.isSweepDue = true }
            return (true, !state.isSweepDue)
        }
        if !isTaken { end(guest) }
        if isFirst { sweep(at: guest.deadline) }
    }

    func end(_ connection: OpenConnection) {
        if let guest = state.withLock({ remove(Guest.key(of: connection), from: &$0) }) { end(guest) }
    }

    func endAll() {
        let guests = state.withLock { state in
            state.hasEnded = true
            return state.guests.keys.compactMap { remove($0, from: &state) }
        }
        for guest in guests { end(guest) }
    }

    private func end(_ guest: Guest) {
        close(guest.socket)
        guest.service.connections.ended(guest.connection)
    }

    // MARK: clients that send or leave

    private func watch(_ guest: Guest) -> Bool {
        var event = unsafe epoll_event()
        unsafe event.events = EPOLLIN.rawValue | EPOLLRDHUP.rawValue
        unsafe event.data.u64 = UInt64(guest.key)
        return unsafe epoll_ctl(epoll, EPOLL_CTL_ADD, guest.socket, &event) == 0
    }

    /// Takes a connection out of the set. Its socket belongs to the caller.
    private func remove(_ key: UInt, from state: inout State) -> Guest? {
        guard let guest = state.guests.removeValue(forKey: key) else { return nil }
        epoll_ctl(epoll, EPOLL_CTL_DEL, guest.socket, nil)
        return guest
    }

    private func look() {
        let most: CInt = 64
        var events = unsafe [epoll_event](repeating: epoll_event(), count: Int(most))
        while true {
            let count = unsafe epoll_wait(epoll, &events, most, 0)
            for index in 0..<Int(max(count, 0)) { wake(unsafe UInt(events[index].data.u64)) }
            if count < most { return }
        }
    }

    private func wake(_ key: UInt) {
        let (guest, hasSent) = state.withLock { state -> (Guest?, Bool) in
            guard let socket = state.guests[key]?.socket else { return (nil, false) }
            var byte = UInt8(0)
            let count = unsafe recv(socket, &byte, 1, CInt(MSG_PEEK) | CInt(MSG_DONTWAIT))
            // An event of an earlier connection with this key.
            if count < 0, errno == EAGAIN || errno == EINTR { return (nil, false) }
            return (remove(key, from: &state), count > 0)
        }
        guard let guest else { return }
        if hasSent { resume(guest) } else { end(guest) }
    }

    private func resume(_ guest: Guest) {
        let (connection, service, past) = (guest.connection, guest.service, guest.past)
        ClientBootstrap(group: guest.loop)
            .channelOption(.allowRemoteHalfClosure, value: true)
            .channelOption(.maxMessagesPerRead, value: 1)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    guard service.connections.resumes(connection, on: channel) else { throw ChannelError.alreadyClosed }
                    try service.resume(on: channel, open: connection, after: past)
                }
            }
            .withConnectedSocket(guest.socket)
            .whenFailure { _ in service.connections.ended(connection) }
    }

    // MARK: time

    private func sweep(at time: NIODeadline) {
        let delay = max(0, (time - .now()).nanoseconds)
        queue.asyncAfter(deadline: .now() + .nanoseconds(Int(delay))) { [weak self] in self?.sweep() }
    }

    /// Closes connections that have been idle for too long, and looks again when the next one will have been.
    private func sweep() {
        let now = NIODeadline.now()
        let (late, next) = state.withLock { state in
            let late = state.guests.values.filter { $0.deadline <= now }.compactMap { remove($0.key, from: &state) }
            let next = state.guests.values.lazy.map(\.deadline).min()
            state.isSweepDue = next != nil
            return (late, next)
        }
        for guest in late { end(guest) }
        if let next { sweep(at: next) }
    }
}

/// Shared by the connections of a listener.
protocol RestingService: AnyObject, Sendable {
    /// How long a connection may be idle.
    var idleLimit: TimeAmount { get }
    var connections: OpenConnections { get }
    /// Installs the handlers of a connection that has rested on its new channel.
    func resume(on channel: any Channel, open: OpenConnection, after past: RestingConnections.Past) throws
}

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
