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
    func during<Outcome>(now: Timestamp, _ reload: () async throws -> Outcome) async rethrows -> Outcome {
        do {
            let outcome = try await reload()
            state.withLock { $0 = (now, true) }
            return outcome
        } catch {
            // The time stays that of the configuration in force.
            state.withLock { $0.isGood = false }
            throw error
        }
    }
}

/// Lets one reload follow the other.
actor ReloadTurns {
    private var last: Task<Void, Never>?

    func take<Outcome: Sendable>(_ reload: @escaping @Sendable () async throws -> Outcome) async throws -> Outcome {
        let before = last
        let task = Task {
            await before?.value
            return try await reload()
        }
        last = Task { _ = await task.result }
        return try await task.value
    }
}
