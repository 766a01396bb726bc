// The kernel's socket address as the address policy reads it.
import Glibc
import RockpoolCore

extension IPAddress {
    /// The address in a `sockaddr`; nil for families other than IPv4 and IPv6.
    init?(_ sockaddr: UnsafeRawPointer, family: sa_family_t) {
        switch Int32(family) {
        case AF_INET:
            let address = sockaddr.loadUnaligned(as: sockaddr_in.self).sin_addr
            self.init(v4: withUnsafeBytes(of: address) { Array($0) })
        case AF_INET6:
            let address = sockaddr.loadUnaligned(as: sockaddr_in6.self).sin6_addr
            self.init(v6: withUnsafeBytes(of: address) { Array($0) })
        default:
            return nil
        }
    }
}
