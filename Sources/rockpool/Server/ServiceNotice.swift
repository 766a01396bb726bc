// Notifications to systemd: one datagram per state, and watchdog messages if requested (sd_notify(3)).
import CCurl  // The kinds of sockets belong to the C module that is loaded first.
import Dispatch
import Glibc
import RockpoolEngine
import RockpoolStore
import ServiceLifecycle

/// The socket in `NOTIFY_SOCKET`.
struct ServiceNotice: Sendable {
    private let address: [UInt8]
    /// The watchdog's interval; nil if it is off or for another process.
    let watchdogInterval: Duration?

    /// Nil without a service manager. A leading `@` is an abstract socket.
    init?(_ environment: [String: String]) {
        guard let path = environment["NOTIFY_SOCKET"], path.hasPrefix("/") || path.hasPrefix("@") else { return nil }
        var bytes = Array(path.utf8)
        if bytes[0] == UInt8(ascii: "@") { bytes[0] = 0 }
        guard bytes.count < MemoryLayout.size(ofValue: sockaddr_un().sun_path) else { return nil }
        address = bytes
        let isOurs = environment["WATCHDOG_PID"].map { Int32($0) == getpid() } ?? true
        watchdogInterval = isOurs ? environment["WATCHDOG_USEC"].flatMap { Int64($0) }.map { .microseconds($0) } : nil
    }

    /// Sends one state. Errors are ignored: the service manager detects a missing message by itself.
    func send(state: String) {
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        var name = sockaddr_un()
        name.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: address) }
        let length = socklen_t(MemoryLayout<sa_family_t>.size + address.count)
        let text = Array(state.utf8)
        withUnsafePointer(to: name) { name in
            name.withMemoryRebound(to: sockaddr.self, capacity: 1) { name in
                _ = sendto(descriptor, text, text.count, 0, name, length)
            }
        }
    }

    /// Notifies the service manager around a reload; `Type=notify-reload` requires its start time.
    func reloading(_ body: () async -> Void) async {
        send(state: "RELOADING=1\nMONOTONIC_USEC=\(DispatchTime.now().uptimeNanoseconds / 1000)")
        await body()
        send(state: "READY=1")
    }
}

/// Notifies the service manager that the server is alive, and that it stops.
struct ServiceWatch: Service {
    let notice: ServiceNotice
    let data: DataStore

    func run() async throws {
        await cancelWhenGracefulShutdown {
            guard let interval = notice.watchdogInterval else {
                try? await gracefulShutdown()
                return
            }
            while !Task.isCancelled {
                // The server is alive if its outbox responds, even with an error that a restart would not fix. If it hangs, systemd
                // restarts the server, and nothing is lost.
                _ = try? await data.counts()
                notice.send(state: "WATCHDOG=1")
                try? await Task.sleep(for: interval / 2)
            }
        }
        notice.send(state: "STOPPING=1")
    }
}
