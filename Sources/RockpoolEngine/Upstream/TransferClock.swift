// The phases of one transfer, filled in while it goes on (docs/reference/admin-api.md#requests).
package import RockpoolCore
import Synchronization

/// Holds the phases of a transfer for the records of the exchanges that it serves.
package final class TransferClock: Sendable {
    private let phases: Mutex<TransferTimings>

    /// - Parameter phases: those until the first byte.
    package init(_ phases: TransferTimings) { self.phases = Mutex(phases) }

    package var timings: TransferTimings { phases.withLock(\.self) }

    /// Records the end of the body.
    /// - Parameter transfer: microseconds since the first byte.
    package func end(transfer: Int64) { phases.withLock { $0.transfer = max(0, transfer) } }
}
