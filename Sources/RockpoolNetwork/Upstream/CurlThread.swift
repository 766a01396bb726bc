// The thread that owns every libcurl handle and passes epoll's events to `curl_multi_socket_action` (docs/architecture.md#parts).
import CCurl
import CEpoll
import Foundation
import Glibc
import Logging
import RockpoolCore
import RockpoolEngine
import Synchronization

/// The thread all transfers run on. Only `submit` may be called from other threads.
// @unchecked Sendable: every stored C handle and `transfers` are touched on `run`'s thread alone; `commands` is locked.
@safe final class CurlThread: @unchecked Sendable {
    enum Command {
        case start(Transfer)
        /// The consumer has space again, or the request body has more data.
        case resume(Transfer)
        case cancel(Transfer)
        /// The network is switched off, for one origin or for all.
        case end(OriginAddress?)
        /// Connections to this origin that are open now are not used again.
        case distrust(OriginAddress)
        case stop
    }

    private var multi: OpaquePointer
    private let epoll: Int32
    private let wakeup: Int32
    private let commands = Mutex<(waiting: [Command], isClosed: Bool)>(([], false))
    private let logger: Logger
    private var trust = ConnectionTrust()
    private var transfers: [ObjectIdentifier: Transfer] = [:]
    /// The transfers under way, and those that wait for a place.
    private var places: FairPlaces<OriginAddress, ClientID?, Transfer>
    private var sockets: WatchedSockets
    /// Transfers whose head has arrived in this turn.
    private var headed: [Transfer] = []
    /// Idle HTTP/1 connections, which this thread watches itself.
    private var connections = PooledConnections()
    /// Sockets that libcurl closed while a transfer was removed: their numbers may already be reused.
    private var closedSockets: Set<curl_socket_t> = []
    private var timerDeadline: ContinuousClock.Instant?
    private var nextSweep = ContinuousClock.now
    private var isStopped = false
    /// The limit for all upstreams together.
    private let connectionLimit: Int
    /// The idle time after which the pooled connections are closed: libcurl itself checks them only when the next request needs one.
    private let poolLimit: Duration
    /// The time when the last transfer ended; nil while one is running, and when the pool is known to be empty.
    private var idleSince: ContinuousClock.Instant?

    init(connectionLimit: Int, poolLimit: Duration, logger: Logger) throws {
        guard curl_global_init(Int(CURL_GLOBAL_ALL)) == CURLE_OK, let multi = unsafe curl_multi_init() else { throw CurlUnavailable() }
        epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
        wakeup = eventfd(0, Int32(EFD_NONBLOCK | EFD_CLOEXEC))
        guard epoll >= 0, wakeup >= 0 else { throw CurlUnavailable() }
        unsafe self.multi = OpaquePointer(multi)
        sockets = WatchedSockets(epoll: epoll)
        self.connectionLimit = connectionLimit
        places = FairPlaces(limit: connectionLimit, hostLimit: Self.hostLimit)
        self.poolLimit = poolLimit
        self.logger = logger
        sockets.watch(wakeup, for: EPOLLIN.rawValue)
    }

    deinit {
        Glibc.close(epoll)
        Glibc.close(wakeup)
    }

    func start() {
        let thread = Thread { self.run() }
        thread.name = "rockpool-curl"
        thread.start()
    }

    func submit(_ command: Command) {
        let (isFirst, isClosed) = commands.withLock { commands in
            if !commands.isClosed { commands.waiting.append(command) }
            return (commands.waiting.count == 1, commands.isClosed)
        }
        if isClosed, case .start(let transfer) = command { return refuse(transfer) }
        if isFirst { eventfd_write(wakeup, 1) }
    }

    // MARK: the thread

    private var handle: UnsafeMutableRawPointer { unsafe UnsafeMutableRawPointer(multi) }

    private func run() {
        configure()
        var events = unsafe [epoll_event](repeating: epoll_event(), count: 256)
        while !isStopped {
            let count = unsafe epoll_wait(epoll, &events, Int32(events.count), waitMilliseconds())
            if count < 0, errno != EINTR {
                logger.critical(unsafe "epoll_wait failed: \(String(cString: strerror(errno)))")
                break
            }
            for index in 0..<Int(max(count, 0)) { unsafe handleEvent(events[index]) }
            if let deadline = timerDeadline, deadline <= .now {
                timerDeadline = nil
                act(on: rp_socket_timeout, flags: 0)
            }
            runCommands()
            collectFinished()
            sweep()
            reportHeads()
        }
        commands.withLock { $0.isClosed = true }
        runCommands()
        for origin in places.used { withdrawAll(to: origin) }
        for transfer in Array(transfers.values) {
            transfer.isCancelled = true
            finish(transfer, with: CURLE_ABORTED_BY_CALLBACK)
        }
        reportHeads()
        unsafe curl_multi_cleanup(handle)
    }

    /// Reports the heads of a turn at its end, when a short body has arrived too: head and body then take one step of their reader.
    private func reportHeads() {
        for transfer in headed { transfer.reportHead() }
        headed.removeAll(keepingCapacity: true)
    }

    /// Records that the final head of a transfer has arrived.
    func noteHead(of transfer: Transfer) { headed.append(transfer) }

    private func configure() {
        let this = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe rp_multi_pointer(handle, CURLMOPT_SOCKETDATA, this)
        unsafe rp_multi_pointer(handle, CURLMOPT_TIMERDATA, this)
        unsafe rp_multi_socket_callback(handle) { _, socket, what, this, _ in
            unsafe CurlThread.of(this)?.watch(socket, for: what)
            return 0
        }
        unsafe rp_multi_timer_callback(handle) { _, milliseconds, this in
            unsafe CurlThread.of(this)?.setTimer(milliseconds)
            return 0
        }
        unsafe rp_multi_long(handle, CURLMOPT_MAXCONNECTS, min(256, connectionLimit))
        // Transfers wait for `places`; behind this limit they would wait in the order of their arrival, whosever they are.
        unsafe rp_multi_long(handle, CURLMOPT_MAX_TOTAL_CONNECTIONS, connectionLimit)
        unsafe rp_multi_long(handle, CURLMOPT_PIPELINING, Int(CURLPIPE_NOTHING))
    }

    /// Returns the thread from libcurl's callback pointer.
    private static func of(_ this: UnsafeMutableRawPointer?) -> CurlThread? {
        unsafe this.map { unsafe Unmanaged<CurlThread>.fromOpaque($0).takeUnretainedValue() }
    }

    private func setTimer(_ milliseconds: Int) {
        timerDeadline = milliseconds < 0 ? nil : .now + .milliseconds(milliseconds)
    }

    private func waitMilliseconds() -> Int32 {
        let sweep = transfers.isEmpty ? idleSince.map { $0 + poolLimit } : .now + .milliseconds(250)
        guard let next = [timerDeadline, sweep].compactMap(\.self).min() else { return -1 }
        let left = next - .now
        let milliseconds = left.components.seconds * 1000 + left.components.attoseconds / 1_000_000_000_000_000
        return Int32(clamping: max(0, milliseconds + (left > .zero ? 1 : 0)))
    }

    private func watch(_ socket: curl_socket_t, for what: Int32) {
        if what == rp_poll_remove { return sockets.unwatch(socket) }
        var events: UInt32 = 0
        if what == rp_poll_in || what == rp_poll_inout { events |= EPOLLIN.rawValue }
        if what == rp_poll_out || what == rp_poll_inout { events |= EPOLLOUT.rawValue }
        sockets.watch(socket, for: events)
    }

    /// Records a socket that a transfer has just opened.
    func noteOpening(of socket: curl_socket_t) { sockets.open(socket) }

    private func handleEvent(_ event: epoll_event) {
        if unsafe event.data.fd == wakeup {
            var count: eventfd_t = 0
            unsafe eventfd_read(wakeup, &count)
            return
        }
        if unsafe connections.isIdle(event.data.fd) { return unsafe discard(event.data.fd) }
        guard unsafe sockets.isWanted(event.data.fd) else { return }
        var flags: Int32 = 0
        if unsafe event.events & EPOLLIN.rawValue != 0 { flags |= rp_select_in }
        if unsafe event.events & EPOLLOUT.rawValue != 0 { flags |= rp_select_out }
        if unsafe event.events & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0 { flags |= rp_select_err }
        unsafe act(on: event.data.fd, flags: flags)
    }

    private func act(on socket: curl_socket_t, flags: Int32) {
        var running: Int32 = 0
        unsafe curl_multi_socket_action(handle, socket, flags, &running)
    }

    private func runCommands() {
        let waiting = commands.withLock { commands in
            let waiting = commands.waiting
            commands.waiting = []
            return waiting
        }
        for command in waiting {
            switch command {
            case .start(let transfer): if mayBegin(transfer) { begin(transfer) }
            case .resume(let transfer): if transfers[ObjectIdentifier(transfer)] != nil { transfer.unpause() }
            case .cancel(let transfer): cancel(transfer)
            case .end(let origin): endTransfers(to: origin)
            case .distrust(let origin): trust.distrust(origin, at: .now)
            case .stop: isStopped = true
            }
        }
    }

    /// Returns the highest age in seconds of a connection to an origin that may be used again: nil for any, 0 for none.
    func longestAge(to origin: OriginAddress) -> Int? { trust.longestAge(to: origin, at: .now) }

    /// The number of transfers with one origin at once; clients share them.
    private static let hostLimit = 256

    /// False if the transfer waits for others of its client, or of all clients, to the same origin.
    private func mayBegin(_ transfer: Transfer) -> Bool {
        guard !isStopped, !transfer.isCancelled else { return true }
        let (origin, client) = (transfer.request.head.origin, transfer.request.account?.client)
        transfer.hasPlace = places.enter(transfer, at: origin, of: client)
        return transfer.hasPlace
    }

    /// Gives the place of a transfer to those that wait.
    private func leavePlace(of transfer: Transfer) {
        guard transfer.hasPlace else { return }
        transfer.hasPlace = false
        begin(places.leave(transfer.request.head.origin, of: transfer.request.account?.client))
    }

    /// Begins transfers that have got a place.
    private func begin(_ next: [Transfer]) {
        for transfer in next {
            transfer.hasPlace = true
            begin(transfer)
        }
    }

    /// Fails the transfers that wait for a place with `origin`.
    private func withdrawAll(to origin: OriginAddress) {
        for transfer in places.withdrawAll(from: origin) { refuse(transfer) }
    }

    private func begin(_ transfer: Transfer) {
        guard !isStopped, !transfer.isCancelled, let easy = transfer.prepare(on: self) else {
            return refuse(transfer)
        }
        transfers[ObjectIdentifier(transfer)] = transfer
        idleSince = nil
        guard unsafe curl_multi_add_handle(handle, easy.raw) == CURLM_OK else { return finish(transfer, with: CURLE_OUT_OF_MEMORY) }
    }

    /// Fails a transfer of which nothing was sent.
    private func refuse(_ transfer: Transfer) {
        transfer.fail(with: TransferFailure(kind: .cancelled, sent: .no, detail: "cancelled before it was sent"))
        leavePlace(of: transfer)
    }

    private func cancel(_ transfer: Transfer) {
        transfer.isCancelled = true
        guard transfers[ObjectIdentifier(transfer)] != nil else {
            let (origin, client) = (transfer.request.head.origin, transfer.request.account?.client)
            guard let next = places.withdraw(from: origin, of: client, where: { $0 === transfer }) else { return }
            refuse(transfer)
            return begin(next)
        }
        finish(transfer, with: CURLE_ABORTED_BY_CALLBACK)
    }

    private func endTransfers(to origin: OriginAddress?) {
        for waiting in places.used where origin == nil || waiting == origin { withdrawAll(to: waiting) }
        for transfer in Array(transfers.values) where origin == nil || transfer.request.head.origin == origin {
            transfer.interrupt()
            finish(transfer, with: CURLE_ABORTED_BY_CALLBACK)
        }
        // Closed now, because closing them later would send a packet while the network is off.
        if transfers.isEmpty { return emptyPool() }
        for socket in connections.idleSockets(to: origin) { discard(socket) }
    }

    private func collectFinished() {
        var left: Int32 = 0
        while let message = unsafe curl_multi_info_read(handle, &left) {
            guard unsafe message.pointee.msg == CURLMSG_DONE, let easy = unsafe message.pointee.easy_handle else { continue }
            var pointer: UnsafeMutableRawPointer?
            unsafe rp_get_pointer(easy, CURLINFO_PRIVATE, &pointer)
            guard let transfer = unsafe Transfer.of(pointer) else { continue }
            unsafe finish(transfer, with: rp_message_result(message))
        }
    }

    private func finish(_ transfer: Transfer, with code: CURLcode) {
        transfers[ObjectIdentifier(transfer)] = nil
        if !transfer.needsAnother { transfer.conclude(code) }
        let pooled = code == CURLE_OK ? transfer.pooledSocket : nil
        closedSockets = []
        if let easy = transfer.easy { unsafe curl_multi_remove_handle(handle, easy.raw) }
        // Bytes after the response are in OpenSSL's hands, where the watch of an idle socket does not see them.
        let isUnread = pooled.map { !closedSockets.contains($0) } == true && transfer.hasUnread
        transfer.release()
        if let connection = transfer.connection {
            // The next transfer may have taken the connection before this one was collected.
            let kept = pooled.flatMap { closedSockets.contains($0) ? nil : $0 }
            if connections.leave(connection, to: transfer.request.head.origin, keeping: kept), let kept {
                if isUnread { discard(kept) } else { watchIdle(kept) }
            }
        }
        if transfer.needsAnother { begin(transfer) } else { leavePlace(of: transfer) }
        if transfers.isEmpty { idleSince = .now }
    }

    /// Makes libcurl close its sockets through this thread. A connection outlives the transfer that opened it, but not this thread.
    func watchClosing(by easy: EasyHandle) {
        unsafe rp_set_pointer(easy.raw, CURLOPT_CLOSESOCKETDATA, Unmanaged.passUnretained(self).toOpaque())
        unsafe rp_set_close_callback(easy.raw) { this, socket in
            unsafe CurlThread.of(this)?.forget(socket)
            return close(socket)
        }
    }

    /// Removes a socket that is about to be closed: the kernel may reuse its number, even for a client's socket, which must not be shut
    /// down.
    private func forget(_ socket: curl_socket_t) {
        closedSockets.insert(socket)
        _ = connections.forget(socket)
        sockets.close(socket)
    }

    /// Assigns a connection to a transfer before libcurl sends the request on it.
    /// - Returns: false if data has arrived on the idle connection: it answers no request, and the next one needs another connection.
    func give(_ connection: ConnectionEnds, to transfer: Transfer) -> Bool {
        let idle = connections.take(connection, insteadOf: transfer.connection)
        transfer.connection = connection
        guard let idle else { return true }
        sockets.unwatch(idle)
        if transfer.easy?.session?.hasUnread == true { return false }
        var byte: UInt8 = 0
        return unsafe recv(idle, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) <= 0
    }

    /// Watches an idle connection: data between two requests answers neither, but libcurl 7.88 would take it for the answer to the next
    /// (RFC 9112 §6.3, §9.3). Level-triggered, so that earlier data counts too.
    private func watchIdle(_ socket: curl_socket_t) { sockets.watch(socket, for: EPOLLIN.rawValue) }

    /// Shuts down the socket; libcurl owns the connection, and detects that it is dead at the next use.
    private func discard(_ socket: curl_socket_t) {
        _ = connections.forget(socket)
        sockets.remove(socket)
        shutdown(socket, Int32(SHUT_RDWR))
    }

    private func emptyPool() {
        guard let fresh = unsafe curl_multi_init() else { return }
        unsafe curl_multi_cleanup(handle)
        unsafe multi = OpaquePointer(fresh)
        (idleSince, timerDeadline) = (nil, nil)
        configure()
    }

    /// Ends transfers with an upstream that has been silent too long; checks every 200 to 250 ms, precise enough for limits in seconds.
    private func sweep() {
        let now = ContinuousClock.now
        if let idleSince, now - idleSince >= poolLimit { emptyPool() }
        guard now >= nextSweep else { return }
        nextSweep = now + .milliseconds(200)
        for transfer in transfers.values where transfer.isOverdue(at: now) { finish(transfer, with: CURLE_OPERATION_TIMEDOUT) }
    }
}

/// libcurl could not be set up: out of memory or descriptors.
struct CurlUnavailable: Error, CustomStringConvertible {
    var description: String { "libcurl could not be initialised (out of memory or file descriptors)" }
}

/// The sockets that are watched, and for what (epoll_ctl(2)).
///
/// The socket of a connection stays in the set between two requests, where libcurl would take it out and put it in again: four system calls
/// for each request. An event that nothing waits for takes it out.
struct WatchedSockets {
    private struct Watch {
        /// The events in the set; 0 if the socket is not in it.
        var events: UInt32 = 0
        /// True if something waits for the events.
        var isWanted = false
    }

    private let epoll: Int32
    /// The sockets that transfers have opened, which are closed through `close`.
    private var own: [curl_socket_t: Watch] = [:]

    init(epoll: Int32) { self.epoll = epoll }

    /// Records a socket that a transfer has just opened.
    mutating func open(_ socket: curl_socket_t) { own[socket] = Watch() }

    /// Removes a socket that is about to be closed: the kernel may use its number again.
    mutating func close(_ socket: curl_socket_t) {
        if let watch = own.removeValue(forKey: socket), watch.events != 0 { epoll_ctl(epoll, EPOLL_CTL_DEL, socket, nil) }
    }

    mutating func watch(_ socket: curl_socket_t, for events: UInt32) {
        guard let known = own[socket] else { return set(socket, operation: EPOLL_CTL_ADD, events: events) }
        if known.events != events { set(socket, operation: known.events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, events: events) }
        own[socket] = Watch(events: events, isWanted: true)
    }

    /// Ends the wait for a socket's events.
    mutating func unwatch(_ socket: curl_socket_t) {
        guard own[socket] != nil else { return remove(socket) }
        own[socket]?.isWanted = false
    }

    /// Takes a socket out of the set.
    mutating func remove(_ socket: curl_socket_t) {
        epoll_ctl(epoll, EPOLL_CTL_DEL, socket, nil)
        if own[socket] != nil { own[socket] = Watch() }
    }

    /// True if something waits for the event that has arrived at a socket; otherwise the socket is taken out of the set.
    mutating func isWanted(_ socket: curl_socket_t) -> Bool {
        guard let watch = own[socket], !watch.isWanted else { return true }
        remove(socket)
        return false
    }

    private func set(_ socket: curl_socket_t, operation: Int32, events: UInt32) {
        var event = unsafe epoll_event()
        unsafe event.events = events
        unsafe event.data.fd = socket
        guard unsafe epoll_ctl(epoll, operation, socket, &event) != 0 else { return }
        // libcurl's view of registered descriptors may differ from the kernel's.
        if errno == EEXIST { unsafe epoll_ctl(epoll, EPOLL_CTL_MOD, socket, &event) }
        if errno == ENOENT { unsafe epoll_ctl(epoll, EPOLL_CTL_ADD, socket, &event) }
    }
}
