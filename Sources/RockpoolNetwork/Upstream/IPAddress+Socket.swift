// Conversion of the kernel's socket addresses for the address policy.
import Glibc
import NIOCore
import RockpoolCore

extension IPAddress {
    /// Returns the port in a `sockaddr`: the two bytes after the family, in network order, for IPv4 and IPv6 alike (netinet/in.h).
    static func port(_ sockaddr: UnsafeRawPointer) -> Int {
        unsafe Int(UInt16(bigEndian: sockaddr.loadUnaligned(fromByteOffset: 2, as: UInt16.self)))
    }

    /// Reads the address in a `sockaddr`: after family and port, for IPv6 after its flow label too. Nil for other families.
    init?(_ sockaddr: UnsafeRawPointer, family: sa_family_t) {
        switch Int32(family) {
        case AF_INET: unsafe self.init(v4: Array(UnsafeRawBufferPointer(start: sockaddr + 4, count: 4)))
        case AF_INET6: unsafe self.init(v6: Array(UnsafeRawBufferPointer(start: sockaddr + 8, count: 16)))
        default: return nil
        }
    }

    /// Nil for a Unix socket.
    init?(_ address: SocketAddress) {
        guard let text = address.ipAddress, let parsed = IPAddress(text) else { return nil }
        self = parsed
    }
}
