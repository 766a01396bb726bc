// The ports this process listens on, so that it sends no request to itself.
import Synchronization

/// Ports of the process's own listeners, added as each is bound.
package final class OwnPorts: Sendable {
    /// The number of listeners at each: they may have different addresses.
    private let ports = Mutex<[Int: Int]>([:])

    package init() {}

    package func insert(_ port: Int) { ports.withLock { $0[port, default: 0] += 1 } }
    /// Notes that a listener was closed.
    package func remove(_ port: Int) {
        ports.withLock { ports in
            let left = (ports[port] ?? 0) - 1
            ports[port] = left > 0 ? left : nil
        }
    }

    package func contains(_ port: Int) -> Bool { ports.withLock { $0[port] != nil } }
}
