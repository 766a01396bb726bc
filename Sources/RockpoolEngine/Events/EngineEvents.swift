// Publishes the engine's events to the replayer, to long polls and to the admin's event stream.
import Logging
package import RockpoolCore
package import RockpoolStore
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

/// A change of one upstream's state, for publication.
package struct ReachabilityChange: Equatable, Sendable {
    package var upstream: String
    package var from: Reachability.State
    package var to: Reachability.State

    package init(upstream: String, from: Reachability.State, to: Reachability.State) {
        self.upstream = upstream
        self.from = from
        self.to = to
    }
}

/// What a live write, or a purge, at this node makes out of date, told to the other nodes of its fleet (docs/fleet.md#copies). Nobody waits
/// for the shared database, and what comes meanwhile is told together.
package final class StaleNews: Sendable {
    private struct State {
        var waiting: Set<StalePlace> = []
        var isSending = false
    }

    /// The most places that wait while the database is away: beyond, copies at other nodes last as long as their lifetime.
    private static let limit = 10_000
    private static let pause = Duration.seconds(1)

    private let data: DataStore
    private let logger: Logger
    private let state = Mutex(State())

    init(data: DataStore, logger: Logger) { (self.data, self.logger) = (data, logger) }

    /// Tells what a purge has removed here.
    package func tell(_ purge: CacheSelection) { tell([.purge(purge.text)]) }

    func tell(_ named: @autoclosure () -> [StalePlace]) {
        guard data.isOfFleet, case let places = named(), !places.isEmpty else { return }
        let begins = state.withLock { state in
            if state.waiting.count < Self.limit { state.waiting.formUnion(places) }
            defer { state.isSending = true }
            return !state.isSending
        }
        guard begins else { return }
        Task { [weak self] in
            while let pause = await self?.send() { try? await Task.sleep(for: pause) }
        }
    }

    /// Sends what waits.
    /// - Returns: the time until the next attempt; nil if nothing is left.
    private func send() async -> Duration? {
        let places = state.withLock { state in
            let places = state.waiting
            (state.waiting, state.isSending) = ([], !places.isEmpty)
            return places
        }
        if places.isEmpty { return nil }
        do { try await data.share(places) } catch DataStoreError.away {
            state.withLock { $0.waiting.formUnion(places) }
            return Self.pause
        } catch {
            logger.failed("telling the fleet what is out of date failed", error: error)
        }
        return .zero
    }
}

/// Logs an error once, where it is handled (docs/architecture.md#rules).
extension Logger {
    /// Logs that `what` failed. A cancelled task, because its client left or the server stops, is not a failure.
    func failed(_ what: String, error: any Error) {
        if error is CancellationError { return }
        self.error("\(what): \(error)")
    }

    /// Logs that a response was not stored, unless another copy has come before it: a whole one, or that of a write of its client.
    func notStored(_ error: any Error) {
        if error is WholeIsStored || error is OlderThanOwnWrite { return }
        failed("a response could not be stored", error: error)
    }
}
