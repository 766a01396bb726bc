// One service for all connections to an address of a listener, because many may be open.
import NIOCore
import Synchronization

/// Makes the service of each address of a listener once. They are as many as this machine has addresses.
final class SharedServices: Sendable {
    private let made = Mutex<[SocketAddress?: ConnectionService]>([:])
    private let make: @Sendable (SocketAddress?) -> ConnectionService

    init(_ make: @escaping @Sendable (SocketAddress?) -> ConnectionService) { self.make = make }

    /// - Parameter address: the address of this machine that the client has connected to.
    func service(at address: SocketAddress?) -> ConnectionService {
        made.withLock { made in
            if let service = made[address] { return service }
            let service = make(address)
            made[address] = service
            return service
        }
    }
}
