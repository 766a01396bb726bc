// Name resolution; the address policy judges each address before a connection to it (docs/security-model.md#addresses).
import Foundation
import Glibc
import NIOCore
import RockpoolCore
import Synchronization

/// Resolves names off the event loops and drops the addresses to which connections are not permitted.
struct AddressResolver: Sendable {
    let addresses: AddressPolicy
    /// Ports that are rejected on loopback addresses.
    var ownPorts = OwnPorts()
    var lookups = NameLookups.process

    /// Returns the permitted addresses of `host`, in the system's order; fails with `TransferFailure` when there is none. An address needs no
    /// lookup.
    /// - Parameter client: the client that asks; nil for Rockpool itself.
    func resolve(
        _ host: String, port: Int, loopbackAllowed: Bool, for client: ClientID? = nil, on loop: any EventLoop
    ) -> EventLoopFuture<[SocketAddress]> {
        if let literal = IPAddress(host), let address = try? SocketAddress(ipAddress: literal.description, port: port) {
            return loop.makeCompletedFuture { try permitted([address], of: host, port: port, loopbackAllowed: loopbackAllowed) }
        }
        return lookups.addresses(of: host, for: client, on: loop).flatMapThrowing { found in
            try permitted(found, of: host, port: port, loopbackAllowed: loopbackAllowed)
        }
    }

    private func permitted(
        _ found: [SocketAddress], of host: String, port: Int, loopbackAllowed: Bool
    ) throws(TransferFailure) -> [SocketAddress] {
        var denied: String?
        var permitted: [SocketAddress] = []
        for var address in found {
            guard let resolved = IPAddress(address) else { continue }
            let isOwn = resolved.isLoopback && ownPorts.contains(port)
            denied = isOwn ? "the target is Rockpool itself" : addresses.refusal(of: resolved, loopbackAllowed: loopbackAllowed)
            address.port = port
            if denied == nil { permitted.append(address) }
        }
        guard permitted.isEmpty else { return permitted }
        throw TransferFailure(kind: .denied, sent: .no, detail: denied ?? "\(host) has no address to connect to")
    }
}

extension ArraySlice<SocketAddress> {
    /// Returns the first successful attempt, one after the other; the last failure when all fail.
    func firstConnected(
        on loop: any EventLoop, attempt: @escaping @Sendable (SocketAddress) -> EventLoopFuture<any Channel>
    ) -> EventLoopFuture<any Channel> {
        guard let first else { return loop.makeFailedFuture(ChannelError.connectPending) }
        let rest = dropFirst()
        return attempt(first).flatMapError { error in
            rest.isEmpty ? loop.makeFailedFuture(error) : rest.firstConnected(on: loop, attempt: attempt)
        }
    }
}

/// Lookups of names by the system, each on a thread of its own, so that names that hang delay neither others nor files and certificates.
/// Who asks for a name that is being looked up waits for the same answer.
final class NameLookups: Sendable {
    typealias LookUp = @Sendable (_ host: String) throws -> [SocketAddress]

    /// Shared by all tunnels and relays.
    static let process = NameLookups()
    /// The number of names that are looked up at once; clients share it.
    static let limit = 128

    private struct Asked: Sendable {
        let host: String
        let client: ClientID?
    }

    private struct Name {
        var isRunning = false
        var waiting: [EventLoopPromise<[SocketAddress]>] = []
    }

    private struct State {
        var names: [String: Name] = [:]
        var queue = FairQueue<ClientID?, Asked>(limit: NameLookups.limit)

        /// Takes a place for the lookup of a name that nobody looks up yet.
        mutating func begins(_ asked: Asked) -> Bool {
            guard names[asked.host]?.isRunning == false, queue.enter(asked, of: asked.client) else { return false }
            names[asked.host]?.isRunning = true
            return true
        }

        /// Gives back the place of a lookup that has ended.
        /// - Returns: the lookups that begin now.
        mutating func ended(_ asked: Asked) -> [Asked] {
            var begun: [Asked] = []
            var left = [asked]
            while let done = left.popLast() {
                for (_, next) in queue.leave(done.client) {
                    // Another client may have had it looked up meanwhile.
                    if names[next.host]?.isRunning == false {
                        names[next.host]?.isRunning = true
                        begun.append(next)
                    } else {
                        left.append(next)
                    }
                }
            }
            return begun
        }
    }

    private let state = Mutex(State())
    private let lookUp: LookUp

    init(lookUp: @escaping LookUp = { try NameLookups.askSystem($0) }) { self.lookUp = lookUp }

    /// Returns the addresses of a name, without a port.
    func addresses(of host: String, for client: ClientID?, on loop: any EventLoop) -> EventLoopFuture<[SocketAddress]> {
        let promise = loop.makePromise(of: [SocketAddress].self)
        let asked = Asked(host: host, client: client)
        let begins = state.withLock { state in
            state.names[host, default: Name()].waiting.append(promise)
            return state.begins(asked)
        }
        if begins { start(asked) }
        return promise.futureResult
    }

    private func start(_ asked: Asked) {
        let thread = Thread { [self] in
            let result = Result { try lookUp(asked.host) }
            let (waiting, next) = state.withLock { state in
                let waiting = state.names.removeValue(forKey: asked.host)?.waiting ?? []
                return (waiting, state.ended(asked))
            }
            for promise in waiting { promise.completeWith(result) }
            for asked in next { start(asked) }
        }
        thread.name = "rockpool-name"
        thread.stackSize = .kib(512)
        thread.start()
    }

    private static func askSystem(_ host: String) throws -> [SocketAddress] {
        var hints = unsafe addrinfo()
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        unsafe hints.ai_flags = AI_ADDRCONFIG
        var list: UnsafeMutablePointer<addrinfo>?
        let code = unsafe getaddrinfo(host, nil, &hints, &list)
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

/// Conversion of the kernel's socket addresses for the address policy.
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
