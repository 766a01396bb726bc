// Writes the access log to stdout: in order, without blocking requests, and with a count of lost lines.
import Dispatch
import Foundation
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
