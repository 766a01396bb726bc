// Publishes the engine's events to the replayer, to long polls and to the admin's event stream.
package import RockpoolCore
import Synchronization

/// Delivers events to listeners, and lets tasks wait for the next event without missing one.
package final class EngineEvents: Sendable {
    package enum Event: Sendable {
        /// An operation was published; `isNews` if its state differs from the one published last.
        case operation(id: String, state: OperationState, isNews: Bool = true)
        case reachability(ReachabilityChange)
        /// A principal has shown a credential that the upstream accepts.
        case credential(principal: String)
        case storage(detail: String)
        /// A pull has shown that a queued operation will meet a conflict; its state is unchanged.
        case conflictAhead(operation: String)
        /// A conflict was detected, or decided.
        case conflict(id: String, operation: String, isOpen: Bool)
    }

    private struct State {
        var version: UInt64 = 0
        var nextWaiter: UInt64 = 0
        var waiters: [UInt64: CheckedContinuation<Bool, Never>] = [:]
        var listeners: [@Sendable (Event) -> Void] = []
    }

    private let state = Mutex(State())

    package init() {}

    /// Adds a listener. The listener is called on the publisher's thread and must return quickly.
    package func listen(_ listener: @escaping @Sendable (Event) -> Void) { state.withLock { $0.listeners.append(listener) } }

    package func tell(_ event: Event) {
        let listeners = state.withLock { $0.listeners }
        for listener in listeners { listener(event) }
        wake()
    }

    /// Wakes all waiting tasks without an event.
    package func wake() {
        let waiters = state.withLock {
            $0.version += 1
            let waiters = $0.waiters
            $0.waiters = [:]
            return waiters
        }
        for waiter in waiters.values { waiter.resume(returning: true) }
    }

    /// A number that grows with every event: read it, check the state, then wait for a change after it.
    package var version: UInt64 { state.withLock { $0.version } }

    /// Waits for an event later than `version`.
    ///
    /// - Returns: false when `deadline` passed or the task was cancelled before an event arrived.
    package func change(after version: UInt64, before deadline: ContinuousClock.Instant) async -> Bool {
        let id = state.withLock {
            $0.nextWaiter += 1
            return $0.nextWaiter
        }
        let timer = Task {
            try? await Task.sleep(until: deadline, clock: .continuous)
            giveUp(id)
        }
        defer { timer.cancel() }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                let isLate = state.withLock {
                    if $0.version > version || Task.isCancelled || ContinuousClock.now >= deadline { return true }
                    $0.waiters[id] = waiter
                    return false
                }
                if isLate { waiter.resume(returning: state.withLock { $0.version } > version) }
            }
        } onCancel: {
            giveUp(id)
        }
    }

    private func giveUp(_ id: UInt64) { state.withLock { $0.waiters.removeValue(forKey: id) }?.resume(returning: false) }
}
