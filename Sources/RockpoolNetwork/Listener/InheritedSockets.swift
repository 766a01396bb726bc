// Listening sockets opened by a service manager: clients wait for the start of the process instead of being refused (sd_listen_fds(3)).
import Glibc

/// Sockets that were passed to this process, by their names.
package struct InheritedSockets: Sendable {
    /// The first descriptor that a service manager passes on.
    private static let firstDescriptor: Int32 = 3

    private var sockets: [(name: String, descriptor: Int32)] = []

    /// Creates an empty set: every listener binds its own socket.
    package init() {}

    /// Reads `LISTEN_FDS`, `LISTEN_FDNAMES` and `LISTEN_PID`, if they are meant for process `pid`.
    ///
    /// A socket belongs to the listener it is named after (`FileDescriptorName=`): `proxy`, or an upstream that has a gateway. A single
    /// unnamed socket is the proxy's. Child processes do not inherit the sockets.
    package init(_ environment: [String: String], pid: Int32 = getpid()) {
        guard environment["LISTEN_PID"].flatMap({ Int32($0) }) == pid, let count = environment["LISTEN_FDS"].flatMap({ Int32($0) }),
            (1...64).contains(count)
        else { return }
        let names = environment["LISTEN_FDNAMES"]?.split(separator: ":", omittingEmptySubsequences: false).map(String.init) ?? []
        for number in 0..<count {
            let descriptor = Self.firstDescriptor + number
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            sockets.append((Int(number) < names.count ? names[Int(number)] : "unknown", descriptor))
        }
    }

    /// Returns the sockets by name of their listener, for listeners that have one.
    ///
    /// - Throws: `ListenFailure` for a socket without a listener: connections to it would never be answered.
    func matched(to listeners: [String]) throws(ListenFailure) -> [String: Int32] {
        if sockets.count == 1, let only = sockets.first, Self.isUnnamed(only.name) { return ["proxy": only.descriptor] }
        var matched: [String: Int32] = [:]
        for (name, descriptor) in sockets {
            let takers = listeners.count { $0 == name }
            guard takers == 1, matched[name] == nil else {
                let cause = takers == 0 ? "nothing is called so" : "two are called so"
                throw ListenFailure(
                    address: "the socket named \(name)",
                    cause: "\(cause); FileDescriptorName= is one of \(listeners.joined(separator: ", ")), each once")
            }
            matched[name] = descriptor
        }
        return matched
    }

    /// True for the names that systemd gives to a socket without `FileDescriptorName=`.
    private static func isUnnamed(_ name: String) -> Bool { ["unknown", "connection", ""].contains(name) || name.hasSuffix(".socket") }
}
