// Ports for listeners that do not announce their port: below the system's ephemeral range, each returned once per cycle.
import Glibc
import Synchronization

/// Hands out TCP ports of the loopback address on which no process listens.
package enum FreePort {
    private static let first = 20_000, count = 8, size = 1_500
    /// Processes of tests that run at the same time have different blocks of ports: one could otherwise take the port of an upstream that
    /// is offline in the other. The first port of a block remains bound until the process that owns it ends.
    private static let block: Range<Int> = {
        let starts = (0..<count).shuffled().map { first + $0 * size }
        let start = starts.first { bound($0) != nil } ?? starts[0]
        return start + 1..<start + size
    }()
    private static let last = Mutex(Int.random(in: block))

    /// Returns the next free port.
    package static func next() -> Int {
        last.withLock { last in
            repeat { last = last + 1 < block.upperBound ? last + 1 : block.lowerBound } while !isFree(last)
            return last
        }
    }

    private static func isFree(_ port: Int) -> Bool {
        guard let descriptor = bound(port) else { return false }
        close(descriptor)
        return true
    }

    /// Returns a socket bound to the port; nil when the port is taken.
    private static func bound(_ port: Int) -> Int32? {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        let status = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
        }
        guard status == 0 else {
            close(descriptor)
            return nil
        }
        return descriptor
    }
}
