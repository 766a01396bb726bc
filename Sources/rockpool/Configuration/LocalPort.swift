// The ports of this machine that no process has.
import CCurl  // The kinds of sockets belong to the C module that is loaded first.
import Glibc
import RockpoolCore

enum LocalPort {
    /// The first address that no process has, from the port of `address` on.
    static func freeAddress(from address: String?) throws(CommandFailure) -> String {
        guard var place = address.flatMap({ HostAndPort($0) }) else { return "127.0.0.1:7630" }
        let first = place.port
        for port in first...min(first + 99, Int(UInt16.max)) {
            place.port = port
            if place.isFree { return place.description }
        }
        throw CommandFailure(.failed, "no port from \(first) on is free; name one for the gateway")
    }
}

extension HostAndPort {
    /// True if this process could listen here now.
    var isFree: Bool {
        var hints = addrinfo()
        hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, "\(port)", &hints, &list) == 0, let first = list?.pointee else { return false }
        defer { freeaddrinfo(list) }
        let descriptor = socket(first.ai_family, first.ai_socktype, first.ai_protocol)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var on: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
        return bind(descriptor, first.ai_addr, first.ai_addrlen) == 0
    }
}
