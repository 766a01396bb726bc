// The last reading of the configuration, for the metrics (docs/reference/metrics.md#server).
import RockpoolCore
import Synchronization

/// When the configuration was last read, and whether it was good.
final class ReloadRecord: Sendable {
    private let state: Mutex<(at: Timestamp, isGood: Bool)>

    /// - Parameter now: the time of the start.
    init(now: Timestamp) { state = Mutex((now, true)) }

    var last: (at: Timestamp, isGood: Bool) { state.withLock { $0 } }

    /// Runs a reload and records its outcome. Rethrows its error.
    func during<Outcome>(now: Timestamp, _ reload: () throws -> Outcome) rethrows -> Outcome {
        do {
            let outcome = try reload()
            state.withLock { $0 = (now, true) }
            return outcome
        } catch {
            // The time stays that of the configuration in force.
            state.withLock { $0.isGood = false }
            throw error
        }
    }
}
