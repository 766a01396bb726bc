// Counts the process's open descriptors for the listeners, which check it before they accept (proc_pid_fd(5)).
import Glibc
package import NIOCore
package import RockpoolCore
import Synchronization

/// Decides if there are descriptors for more connections. All listeners of a process share one gauge.
package final class DescriptorGauge: Sendable {
    /// Maximum number of connections that one read of a listener accepts (NIO's `maxMessagesPerRead`).
    static let batch = 4
    /// How long a count is reused; connections accepted since are added to it.
    private static let memory = TimeAmount.seconds(1)
    /// Larger than any budget, and small enough that an addition does not overflow.
    private static let unknownCount = 1 << 30

    private struct State {
        /// Descriptors that were open at the last count, and the time of that count.
        var open = 0
        var askedAt = NIODeadline.distantPast
        /// Connections that may have been accepted since.
        var accepted = 0
    }

    package let budget: DescriptorBudget
    private let count: @Sendable () -> Int
    private let state = Mutex(State())

    /// - Parameter count: returns the number of open descriptors.
    init(_ budget: DescriptorBudget, count: @escaping @Sendable () -> Int) {
        self.budget = budget
        self.count = count
    }

    /// Creates a gauge that counts by the system.
    package convenience init(_ budget: DescriptorBudget) { self.init(budget, count: { DescriptorGauge.openDescriptors() }) }

    /// True if a listener may accept the connections of one read; they are then counted as accepted.
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

    /// Returns the number of the process's open descriptors; 0 where the system does not report it, and more than any budget when no
    /// descriptor is left to read the directory.
    static func openDescriptors() -> Int {
        let path = "/proc/self/fd"
        var raw = stat()
        // Linux reports the number as the directory's size since 6.2.
        if unsafe stat(path, &raw) == 0, raw.st_size > 0 { return Int(raw.st_size) }
        guard let directory = unsafe opendir(path) else { return errno == EMFILE || errno == ENFILE ? unknownCount : 0 }
        defer { unsafe closedir(directory) }
        // Exclude ".", ".." and the descriptor of this directory.
        var count = -3
        while unsafe readdir(directory) != nil { count += 1 }
        return max(0, count)
    }
}

/// The first handler of a listening channel: holds back reads while the gauge is low, and retries after `pause`
/// (docs/security-model.md#descriptors).
package final class AcceptGate: ChannelOutboundHandler {
    package typealias OutboundIn = Never

    private static let pause = TimeAmount.milliseconds(50)

    private let gauge: DescriptorGauge
    private var context: ChannelHandlerContext?
    private var isWaiting = false

    package init(_ gauge: DescriptorGauge) { self.gauge = gauge }

    package func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    package func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    package func read(context: ChannelHandlerContext) {
        if isWaiting { return }
        if gauge.mayAccept() { return context.read() }
        isWaiting = true
        let me = NIOLoopBound(self, eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: Self.pause) { me.value.lookAgain() }
    }

    private func lookAgain() {
        isWaiting = false
        if let context { read(context: context) }
    }
}
