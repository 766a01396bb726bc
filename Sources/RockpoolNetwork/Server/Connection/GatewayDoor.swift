// A gateway that is open. A reload changes what it stands in for, also for the connections that are open.
package import RockpoolCore
import Synchronization

/// The upstreams of one gateway, as the configuration in force has them.
package final class GatewayDoor: Sendable {
    private let state: Mutex<GatewayListener>

    package init(_ listener: GatewayListener) { state = Mutex(listener) }

    package var listener: GatewayListener { state.withLock { $0 } }

    func change(to listener: GatewayListener) { state.withLock { $0 = listener } }

    /// Lets requests on connections that are still open know that the gateway is gone.
    func close() { change(to: GatewayListener(listen: listener.listen, upstreams: [])) }
}
