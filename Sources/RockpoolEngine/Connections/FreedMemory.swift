// Returns the memory of ended connections and streams to the system, because glibc keeps freed memory for later allocations.
import CMalloc
import Dispatch
package import NIOCore
import RockpoolCore
import Synchronization

/// Counts open connections and streams, and how far the count has fallen.
struct Ebb {
    /// The smallest fall that makes the return of memory worthwhile: a stream leaves some ten kilobytes.
    static let least = 256

    private(set) var open = 0
    /// The maximum of `open` since memory was last returned.
    private var most = 0

    mutating func rise() {
        open += 1
        most = max(most, open)
    }

    /// Counts `count` ended connections or streams.
    /// - Returns: true if the count has fallen far enough that memory is to be returned.
    mutating func fall(by count: Int) -> Bool {
        open -= count
        guard most - open >= Self.least else { return false }
        most = open
        return true
    }
}

/// Returns freed memory after many connections or streams have ended, but not while new ones replace them and reuse it. Measured with 1 000
/// streams with small, unread replies: 45 MB stayed without it and 1 MB with it, for 5 to 18 ms of a thread (80 ms after 700 MB).
package final class FreedMemory: Sendable {
    /// The instance of this process.
    package static let process = FreedMemory { _ = malloc_trim(0) }
    /// Makes the allocator keep what is freed and asked for again all the time: without it, each transfer's buffers are given back to the
    /// system and mapped again, which costs a twelfth of a request that is passed on. Called once, before the first request.
    package static func keepWorkingMemory() {
        _ = mallopt(rp_trim_threshold, Int32(ByteCount.mib(8).bytes))
        _ = mallopt(rp_top_pad, Int32(ByteCount.mib(1).bytes))
        _ = mallopt(rp_mmap_threshold, Int32(ByteCount.mib(1).bytes))
    }

    /// The delay before memory is returned, so that more connections can end first, and the minimum interval between two returns.
    private static let pause = TimeAmount.seconds(2)

    /// The number of writes that are much to have had in memory, with their bodies.
    static let manyWrites = 2_000

    private struct State {
        var ebb = Ebb()
        var isDue = false
        /// How often `muchWasFreed` was called since memory was last returned.
        var asked = 0
    }

    private let state = Mutex(State())
    private let giveBack: @Sendable () -> Void

    init(_ giveBack: @escaping @Sendable () -> Void) { self.giveBack = giveBack }

    /// Counts a new connection or stream.
    package func opened() { state.withLock { $0.ebb.rise() } }

    /// Counts `count` ended connections or streams.
    /// - Parameter loop: schedules the delay; the memory is returned on a thread that may block.
    package func ended(_ count: Int, on loop: any EventLoop) {
        let isDue = state.withLock { state in
            guard state.ebb.fall(by: count), !state.isDue else { return false }
            state.isDue = true
            return true
        }
        guard isDue else { return }
        loop.scheduleTask(in: Self.pause) { [self] in
            state.withLock { $0.isDue = false }
            DispatchQueue.global(qos: .utility).async { [giveBack] in giveBack() }
        }
    }

    /// Returns memory once nothing has asked for it for some time, because much was used for a moment, such as all open writes.
    func muchWasFreed() {
        let isFirst = state.withLock { state in
            state.asked += 1
            return state.asked == 1
        }
        if isFirst { giveBackWhenQuiet(after: 1) }
    }

    private func giveBackWhenQuiet(after asked: Int) {
        DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + .nanoseconds(Int(Self.pause.nanoseconds))) { [self] in
            let now = state.withLock { state in
                if state.asked == asked { state.asked = 0 }
                return state.asked
            }
            if now == 0 { giveBack() } else { giveBackWhenQuiet(after: now) }
        }
    }
}
