// What became of queued writes since the start, for the metrics (docs/reference/metrics.md#outbox).
package import RockpoolCore
import Synchronization

/// Counts changes of state and measures deliveries, by upstream.
package final class OutboxMeasures: Sendable {
    /// The figures of one upstream.
    package struct Figures: Sendable {
        /// How often an operation entered a state.
        package var entered: [OperationState: Int] = [:]
        /// Attempts of a delivered operation.
        package var attempts = BucketCounts(BucketCounts.attempts)
        /// Seconds from the acceptance of a delivered operation to its first sending.
        package var wait = BucketCounts(BucketCounts.waits)
        /// Seconds from the acceptance of a delivered operation to its end.
        package var total = BucketCounts(BucketCounts.waits)
        /// Seconds from the first sending of a delivered operation to its end.
        package var sending = BucketCounts(BucketCounts.waits)
    }

    private struct State {
        /// The last states, by sequence: an operation is published more often than its state changes.
        var last: [Int64: OperationState] = [:]
        var figures: [String: Figures] = [:]
        var running: [String: Int] = [:]
    }

    private static let lastLimit = 10_000

    private let state = Mutex(State())

    init() {}

    /// Counts the state of an operation. Returns true if it is news.
    func note(_ operation: QueuedWrite) -> Bool {
        state.withLock { state in
            guard state.last[operation.sequence] != operation.state else { return false }
            if state.last.count >= Self.lastLimit { state.last = [:] }
            state.last[operation.sequence] = operation.state
            state.figures[operation.upstream, default: Figures()].note(operation)
            return true
        }
    }

    /// Notes how many operations the replayer counts as being sent, by upstream.
    func noteRunning(_ counts: [String: Int]) { state.withLock { $0.running = counts } }

    /// The number of operations of an upstream that the replayer counts as being sent.
    package func running(at upstream: String) -> Int { state.withLock { $0.running[upstream, default: 0] } }

    /// The figures of all upstreams together.
    package var sync: SyncFigures {
        state.withLock { state in
            state.figures.values.reduce(into: SyncFigures()) { sum, figures in
                sum.delivered += figures.entered[.delivered, default: 0]
                sum.refused += figures.entered[.dead, default: 0]
                sum.conflicts += figures.entered[.conflicted, default: 0]
                sum.seconds.add(figures.sending)
            }
        }
    }

    /// The figures of an upstream.
    package subscript(upstream: String) -> Figures { state.withLock { $0.figures[upstream] ?? Figures() } }
}

extension OutboxMeasures.Figures {
    fileprivate mutating func note(_ operation: QueuedWrite) {
        entered[operation.state, default: 0] += 1
        guard operation.state == .delivered, let end = operation.endedAt else { return }
        attempts.record(Double(operation.answeredAttempts + operation.networkAttempts))
        if let first = operation.firstSentAt {
            wait.record(first.seconds(since: operation.acceptedAt))
            sending.record(end.seconds(since: first))
        }
        total.record(end.seconds(since: operation.acceptedAt))
    }
}

extension Timestamp {
    /// Seconds since `earlier`, at least 0: the clock may have been set back.
    fileprivate func seconds(since earlier: Timestamp) -> Double { max(0, Double((self - earlier).milliseconds) / 1000) }
}
