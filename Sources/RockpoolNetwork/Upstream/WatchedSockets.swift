// The sockets in the epoll set of the libcurl thread (epoll_ctl(2)).
import CCurl
import CEpoll
import Glibc

/// The sockets that are watched, and for what.
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
