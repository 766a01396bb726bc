// The access log's way to stdout: in order, never in the way of an exchange, and honest about what was lost.
import Dispatch
import Foundation
import Synchronization

/// Writes lines behind the exchanges' backs.
final class AccessLog: Sendable {
    /// Lines that may wait for a reader that is slow; more are dropped and counted.
    private static let waitingLimit = 10_000

    private let queue = DispatchQueue(label: "access log")
    private let state = Mutex((waiting: 0, lost: 0))
    private let descriptor: Int32

    init(descriptor: Int32 = STDOUT_FILENO) { self.descriptor = descriptor }

    /// Takes one line, or counts it as lost.
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
        let notice = lost > 0 ? "# \(lost) lines were lost: whoever reads this is too slow\n" : ""
        try? FileHandle(fileDescriptor: descriptor, closeOnDealloc: false).write(contentsOf: Data((notice + line + "\n").utf8))
    }
}
