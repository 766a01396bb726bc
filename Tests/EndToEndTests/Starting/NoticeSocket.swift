// The service manager's end of sd_notify: a datagram socket that queues the received states.
import Glibc
import RockpoolTesting

/// A socket for `NOTIFY_SOCKET`.
final class NoticeSocket: Sendable {
    /// Its path.
    let path: String
    private let scratch: Scratch
    private let descriptor: Int32

    /// Throws when the socket cannot be created.
    init() throws {
        scratch = try Scratch()
        path = scratch.path + "/notify"
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
        var name = sockaddr_un()
        name.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
        let bound = withUnsafePointer(to: name) { name in
            name.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
        }
        guard descriptor >= 0, bound == 0 else { throw NeverCame(description: "a datagram socket at \(path)") }
    }

    deinit { close(descriptor) }

    /// Returns the next state message; nil when none has been received.
    func next() -> String? {
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = recv(descriptor, &bytes, bytes.count, 0)
        return count < 0 ? nil : String(decoding: bytes.prefix(count), as: UTF8.self)
    }
}
