// How many descriptors the process has open, as a listener wants to know it before it accepts (proc_pid_fd(5)).
import Glibc
import NIOCore
package import RockpoolCore
import Synchronization

/// Says whether there are descriptors for more connections. All listeners of a process share one.
package final class DescriptorGauge: Sendable {
    /// What one read of a listener accepts at most (NIO's `maxMessagesPerRead`).
    static let batch = 4
    /// For how long an answer of the system's is good, beside what was accepted since.
    private static let memory = TimeAmount.seconds(1)
    /// More than any budget has, and no trap when something is added.
    private static let unknown = 1 << 30

    private struct State {
        /// Descriptors that were open when the system was asked last, and when that was.
        var open = 0
        var askedAt = NIODeadline.distantPast
        /// Connections that may have come since.
        var accepted = 0
    }

    package let budget: DescriptorBudget
    private let count: @Sendable () -> Int
    private let state = Mutex(State())

    /// - Parameter count: gives the descriptors that are open.
    init(_ budget: DescriptorBudget, count: @escaping @Sendable () -> Int) {
        self.budget = budget
        self.count = count
    }

    /// Asks the system.
    package convenience init(_ budget: DescriptorBudget) { self.init(budget, count: { DescriptorGauge.openDescriptors() }) }

    /// Whether a listener may accept what one read of it takes; counted as accepted when it may.
    func mayAccept(now: NIODeadline = .now()) -> Bool {
        state.withLock { state in
            if now - state.askedAt >= Self.memory || state.open + state.accepted + Self.batch > budget.acceptsBelow {
                state = State(open: count(), askedAt: now)
            }
            guard state.open + state.accepted + Self.batch <= budget.acceptsBelow else { return false }
            state.accepted += Self.batch
            return true
        }
    }

    /// Descriptors that this process has open; 0 where the system does not tell, and more than any budget where not even a look is left.
    static func openDescriptors() -> Int {
        let path = "/proc/self/fd"
        var raw = stat()
        // Linux tells their number as the size since 6.2.
        if unsafe stat(path, &raw) == 0, raw.st_size > 0 { return Int(raw.st_size) }
        guard let directory = unsafe opendir(path) else { return errno == EMFILE || errno == ENFILE ? unknown : 0 }
        defer { unsafe closedir(directory) }
        // Without "." and "..", and the one that looks.
        var count = -3
        while unsafe readdir(directory) != nil { count += 1 }
        return max(0, count)
    }
}
