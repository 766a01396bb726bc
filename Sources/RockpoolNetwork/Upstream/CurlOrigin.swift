// The production `Origin`: passes requests to the one thread that runs libcurl (docs/architecture.md#parts *upstream*).
package import Logging
import NIOCore
package import RockpoolCore
package import RockpoolEngine

/// Sends requests to upstreams with libcurl: pooled connections, verified TLS, the target's bytes unchanged.
package final class CurlOrigin: Origin {
    private let thread: CurlThread
    private let addresses: AddressPolicy
    private let ownPorts: OwnPorts

    /// - Parameters:
    ///   - addresses: the policy that each resolved address must pass at each connection attempt.
    ///   - ownPorts: the proxy's own listeners, never connected to on this machine.
    ///   - connections: the limit for all upstreams together, idle connections included; further transfers wait.
    ///   - poolLimit: the time after the last transfer at which idle connections are closed.
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
        if request.via != nil, !request.isDeclared,
            let refusal = addresses.refusal(ofTarget: request.head.origin.host, loopbackAllowed: request.allowsLoopback)
        {
            throw TransferFailure(kind: .denied, sent: .no, detail: refusal)
        }
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

    package func distrustKept(to origin: OriginAddress) { thread.submit(.distrust(origin)) }

    /// Stops the thread; running transfers fail as cancelled.
    package func close() { thread.submit(.stop) }
}
