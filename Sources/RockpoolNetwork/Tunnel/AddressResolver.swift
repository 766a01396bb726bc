// Name resolution; the address policy judges each address before a connection to it (docs/security-model.md#addresses).
import Glibc
import NIOCore
import NIOPosix
import RockpoolCore

/// Resolves names off the event loops and drops the addresses to which connections are not permitted.
struct AddressResolver: Sendable {
    let addresses: AddressPolicy
    /// Ports that are rejected on loopback addresses.
    var ownPorts = OwnPorts()
    /// A separate thread pool: slow lookups must not delay files and certificates, which share NIO's.
    private static let threads: NIOThreadPool = {
        let threads = NIOThreadPool(numberOfThreads: 8)
        threads.start()
        return threads
    }()

    /// Returns the permitted addresses of `host`, in the system's order; fails with `TransferFailure` when there is none.
    func resolve(_ host: String, port: Int, loopbackAllowed: Bool, on loop: any EventLoop) -> EventLoopFuture<[SocketAddress]> {
        Self.threads.runIfActive(eventLoop: loop) {
            var denied: String?
            let permitted = try Self.lookUp(host, port: port).filter { address in
                guard let resolved = IPAddress(address) else { return false }
                let isOwn = resolved.isLoopback && ownPorts.contains(port)
                denied = isOwn ? "the target is Rockpool itself" : addresses.refusal(of: resolved, loopbackAllowed: loopbackAllowed)
                return denied == nil
            }
            if permitted.isEmpty {
                throw TransferFailure(kind: .denied, sent: .no, detail: denied ?? "\(host) has no address to connect to")
            }
            return permitted
        }
    }

    private static func lookUp(_ host: String, port: Int) throws -> [SocketAddress] {
        var hints = unsafe addrinfo()
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        unsafe hints.ai_flags = AI_ADDRCONFIG
        var list: UnsafeMutablePointer<addrinfo>?
        let code = unsafe getaddrinfo(host, String(port), &hints, &list)
        guard code == 0 else {
            throw TransferFailure(kind: .dns, sent: .no, detail: unsafe "cannot be resolved: \(String(cString: gai_strerror(code)))")
        }
        defer { unsafe freeaddrinfo(list) }
        return unsafe sequence(first: list, next: { unsafe $0?.pointee.ai_next }).compactMap { node in
            guard let node = unsafe node, let raw = unsafe node.pointee.ai_addr else { return nil }
            let bytes = UnsafeRawPointer(raw)
            switch unsafe node.pointee.ai_family {
            case AF_INET: return unsafe SocketAddress(bytes.loadUnaligned(as: sockaddr_in.self))
            case AF_INET6: return unsafe SocketAddress(bytes.loadUnaligned(as: sockaddr_in6.self))
            default: return nil
            }
        }
    }
}
