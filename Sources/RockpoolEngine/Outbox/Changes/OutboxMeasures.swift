// What became of queued writes since the start, for the metrics (docs/reference/metrics.md#outbox).
import HTTPTypes
import Logging
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

/// Writes one line for each operation that is delivered or needs a person (docs/guide/operating.md#log).
final class OutboxLog: Sendable {
    /// Lines of one state within `period`; further ones are counted.
    private static let limit = 20
    private static let period = TimeSpan.seconds(10)

    private struct Window {
        var begunAt = Timestamp.distantPast
        var lines = 0
        var omitted = 0
    }

    private let windows = Mutex<[OperationState: Window]>([:])
    private let logger: Logger
    private let now: @Sendable () -> Timestamp

    init(logger: Logger, now: @escaping @Sendable () -> Timestamp) {
        self.logger = logger
        self.now = now
    }

    /// Writes the line for an operation whose state has changed.
    func note(_ operation: QueuedWrite) {
        guard let level = operation.state.logLevel, let omitted = admit(operation.state) else { return }
        var metadata: Logger.Metadata = [
            "operation": "\(operation.id)", "upstream": "\(operation.upstream)", "method": "\(operation.request.method.rawValue)",
            "path": "\(operation.request.path)",
        ]
        if let reason = operation.reason { metadata["reason"] = "\(reason.rawValue)" }
        if let status = operation.result?.head.status { metadata["status"] = "\(status)" }
        if let error = operation.lastError { metadata["error"] = "\(error)" }
        if level == .warning { metadata["next"] = "rockpool outbox show \(operation.id)" }
        if omitted > 0 { metadata["omitted"] = "\(omitted)" }
        logger.log(level: level, "a queued write is \(operation.state.rawValue)", metadata: metadata)
    }

    /// Returns the number of lines that were left out since the last one; nil if this one is left out too.
    private func admit(_ state: OperationState) -> Int? {
        let now = now()
        return windows.withLock { windows in
            var window = windows[state] ?? Window()
            let omitted = window.omitted
            if now < window.begunAt || now >= window.begunAt + Self.period { window = Window(begunAt: now) }
            defer { windows[state] = window }
            guard window.lines < Self.limit else {
                window.omitted += 1
                return nil
            }
            window.lines += 1
            return omitted
        }
    }
}

extension OperationState {
    /// The level of the line about an operation in this state; nil for states that need no line.
    fileprivate var logLevel: Logger.Level? {
        switch self {
        case .dead, .conflicted, .uncertain, .parked: .warning
        case .delivered: .info
        default: nil
        }
    }
}

/// Counts the writes of the last minutes that were refused because the outbox had no room for them: whoever looks at the server is to see
/// it, not their clients alone.
package final class RefusedWrites: Sendable {
    /// A refusal is shown for this time.
    private static let shownFor = TimeSpan.minutes(10)
    /// The time between two lines in the log.
    private static let silence = TimeSpan.minutes(1)

    private struct State {
        var count = 0
        var since = Timestamp.distantPast
        var last = Timestamp.distantPast
        var loggedAt = Timestamp.distantPast
        var why = ""
    }

    private let state = Mutex(State())

    /// Notes a refusal.
    /// - Parameter why: the words that its client was answered.
    func note(_ why: String, now: Timestamp, logger: Logger) {
        let count: Int? = state.withLock { state in
            if now - state.last >= Self.shownFor || now < state.last { state = State(since: now, loggedAt: state.loggedAt) }
            state.count += 1
            (state.last, state.why) = (now, why)
            guard now - state.loggedAt >= Self.silence || now < state.loggedAt else { return nil }
            state.loggedAt = now
            return state.count
        }
        guard let count else { return }
        logger.warning("writes are refused: the outbox has no room for them", metadata: ["refused": "\(count)", "last": "\(why)"])
    }

    /// The refusals of the last ten minutes in one sentence; nil without any.
    package func words(now: Timestamp) -> String? {
        let state = state.withLock { $0 }
        guard state.count > 0, now - state.last < Self.shownFor else { return nil }
        let refused = state.count.counted("write was refused", "writes were refused")
        return "\(refused) since \(RFC3339.format(state.since)), the last at \(RFC3339.format(state.last)): \(state.why)"
    }
}
