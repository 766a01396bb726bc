// The clients that rejected the proxy's certificate, shared by the connections that detect them and the pages that list them.
package import RockpoolCore
import Synchronization

/// The clients that did not trust the proxy's certificate authority.
package final class UntrustingTable: Sendable {
    private let state = Mutex(UntrustingClients())

    init() {}

    /// The latest first, at most `UntrustingClients.limit`.
    package var list: [UntrustingClient] { state.withLock { $0.list } }

    /// See `UntrustingClients.note`.
    package func note(
        host: String, client: String, at now: Timestamp, alert: String, mayBypass: Bool
    ) -> (isNews: Bool, isBypassed: Bool) {
        state.withLock { $0.note(host: host, client: client, at: now, alert: alert, mayBypass: mayBypass) }
    }

    /// See `UntrustingClients.isBypassed`.
    package func isBypassed(host: String, client: String, at now: Timestamp) -> Bool {
        state.withLock { $0.isBypassed(host: host, client: client, at: now) }
    }

    package func forget(host: String, client: String) {
        state.withLock { $0.forget(host: host, client: client) }
    }
}
