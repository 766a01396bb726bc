// The real `Origin`: hands requests to the one thread that runs libcurl (design §6 *upstream*).
package import Logging
import NIOCore
package import RockpoolCore
package import RockpoolEngine

/// Sends requests to upstreams with libcurl: pooled connections, verified TLS, the target's bytes untouched.
package final class CurlOrigin: Origin {
    private let thread: CurlThread
    private let addresses: AddressPolicy
    private let ownPorts: OwnPorts

    /// - Parameters:
    ///   - addresses: what a resolved address must pass before it is connected to, each attempt anew.
    ///   - ownPorts: our own listeners', never connected to on this machine.
    ///   - connections: to all upstreams at once, those that are kept for a next request included; transfers wait for one.
    ///   - poolLimit: how long after the last transfer the connections that are kept for the next are closed.
    /// - Throws: when libcurl or the kernel refuses a handle.
    package init(
        addresses: AddressPolicy, ownPorts: OwnPorts, connections: Int = 4096, poolLimit: Duration = .seconds(60), logger: Logger
    ) throws {
        self.thread = try CurlThread(connectionLimit: connections, poolLimit: poolLimit, logger: logger)
        self.addresses = addresses
        self.ownPorts = ownPorts
        thread.start()
    }

    package func send(_ request: OutboundRequest) async throws(TransferFailure) -> OriginReply {
        let transfer = Transfer(request: request, addresses: addresses, ownPorts: ownPorts)
        let outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                transfer.answered = { continuation.resume(returning: $0) }
                thread.submit(.start(transfer))
            }
        } onCancel: {
            thread.submit(.cancel(transfer))
        }
        return try outcome.get()
    }

    package func endTransfers(to origin: OriginAddress?) { thread.submit(.end(origin)) }

    /// Stops the thread; transfers under way fail as cancelled.
    package func close() { thread.submit(.stop) }
}
