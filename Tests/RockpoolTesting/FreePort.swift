// Ports for listeners that do not announce their port: below the system's ephemeral range, each returned once per cycle.
import Glibc
import Synchronization

/// Hands out TCP ports of the loopback address on which no process listens.
package enum FreePort {
    private static let range = 20_000..<32_000
    private static let last = Mutex(Int.random(in: range))

    /// Returns the next free port.
    package static func next() -> Int {
        last.withLock { last in
            repeat { last = last + 1 < range.upperBound ? last + 1 : range.lowerBound } while !isFree(last)
            return last
        }
    }

    private static func isFree(_ port: Int) -> Bool {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0 }
        }
    }
}
