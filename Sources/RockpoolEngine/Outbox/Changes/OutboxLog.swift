// What happens to queued writes, for the log of the server (docs/guide/operating.md#log).
import HTTPTypes
import Logging
import RockpoolCore
import Synchronization

/// Writes one line for each operation that is delivered or needs a person.
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
