// The access log and the log: written in order, without blocking requests (docs/guide/operating.md#log).
import ArgumentParser
import Dispatch
import Foundation
import Logging
import RockpoolCore
import Synchronization

/// Writes lines asynchronously to the requests.
final class AccessLog: Sendable {
    /// The most lines that wait for a slow reader; further ones are dropped and counted.
    private static let waitingLimit = 10_000

    private let queue = DispatchQueue(label: "access log")
    private let state = Mutex((waiting: 0, lost: 0))
    private let descriptor: Int32

    init(descriptor: Int32 = STDOUT_FILENO) { self.descriptor = descriptor }

    /// Queues one line, or counts it as lost.
    func write(_ line: String) {
        let isTaken = state.withLock { state in
            guard state.waiting < Self.waitingLimit else {
                state.lost += 1
                return false
            }
            state.waiting += 1
            return true
        }
        guard isTaken else { return }
        queue.async { self.put(line) }
    }

    private func put(_ line: String) {
        let lost = state.withLock { state in
            defer { (state.waiting, state.lost) = (state.waiting - 1, 0) }
            return state.lost
        }
        let notice = lost > 0 ? "# \(lost.counted("line was", "lines were")) lost: the reader of this log is too slow\n" : ""
        try? FileHandle(fileDescriptor: descriptor, closeOnDealloc: false).write(contentsOf: Data((notice + line + "\n").utf8))
    }
}

/// swift-log's handler for one logger.
struct LogLines: LogHandler {
    let label: String
    let output: LogOutput
    var logLevel = Logger.Level.notice
    var metadata: Logger.Metadata = [:]

    init(label: String, output: LogOutput) {
        self.label = label
        self.output = output
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let details = metadata.merging(event.metadata ?? [:]) { $1 }.sorted { $0.key < $1.key }.map { (name: $0.key, value: "\($0.value)") }
        output.write(event.level, "\(event.message)", label: label, details: details, at: WallClock.now())
    }
}

/// swift-log's levels, as written on the command line.
enum LogLevel: String, CaseIterable, ExpressibleByArgument {
    case trace, debug, info, notice, warning, error

    var level: Logger.Level { Logger.Level(rawValue: rawValue) ?? .notice }
}

extension Logger {
    init(label: String, level: Logger.Level) {
        self.init(label: label)
        logLevel = level
    }
}
