// Listening sockets that a service manager opened before us: clients wait for our start instead of being refused (sd_listen_fds(3)).
import Glibc

/// Sockets that were passed on to this process, by their names.
package struct InheritedSockets: Sendable {
    /// The first that a service manager passes on.
    private static let firstDescriptor: Int32 = 3

    private var sockets: [(name: String, descriptor: Int32)] = []

    /// None: every listener binds its own.
    package init() {}

    /// What `LISTEN_FDS`, `LISTEN_FDNAMES` and `LISTEN_PID` say, when they mean the process `pid`.
    ///
    /// A socket is taken by the listener it is named after (`FileDescriptorName=`): `proxy`, or an upstream that has a gateway. One
    /// alone that was given no name is the proxy's. Those that we start ourselves do not get them.
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

    /// The sockets under the names of listeners, for those who have one.
    ///
    /// - Throws: `ListenFailure` for a socket nobody is waiting for: connections to it would never be answered.
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

    /// What systemd calls a socket whose unit says nothing: by the unit, or that it is not known.
    private static func isUnnamed(_ name: String) -> Bool { ["unknown", "connection", ""].contains(name) || name.hasSuffix(".socket") }
}
