// One service for all connections to an address of a listener, because many may be open.
import NIOCore
import Synchronization

/// Makes the service of each address of a listener once. They are as many as this machine has addresses.
final class SharedServices: Sendable {
    private let made = Mutex<(version: Int, services: [SocketAddress?: ConnectionService])>((0, [:]))
    private let settings: ListenerSettings
    private let make: @Sendable (SocketAddress?) -> ConnectionService

    /// - Parameter settings: those that `make` reads; after a change new ones are made.
    init(under settings: ListenerSettings, _ make: @escaping @Sendable (SocketAddress?) -> ConnectionService) {
        (self.settings, self.make) = (settings, make)
    }

    /// - Parameter address: the address of this machine that the client has connected to.
    func service(at address: SocketAddress?) -> ConnectionService {
        let version = settings.version
        return made.withLock { made in
            if made.version != version { made = (version, [:]) }
            if let service = made.services[address] { return service }
            let service = make(address)
            made.services[address] = service
            return service
        }
    }
}
