// The ports this process listens on, so that it sends no request to itself.
import Synchronization

/// Ports of the process's own listeners, added as each is bound.
package final class OwnPorts: Sendable {
    private let ports = Mutex<Set<Int>>([])

    package init() {}

    package func insert(_ port: Int) { ports.withLock { _ = $0.insert(port) } }
    package func contains(_ port: Int) -> Bool { ports.withLock { $0.contains(port) } }
}
