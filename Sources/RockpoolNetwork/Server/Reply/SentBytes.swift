// The number of a reply's body bytes that were written to its client.
import NIOCore
import RockpoolEngine
import Synchronization

/// Counts the bytes of one reply as their writes succeed, and those that wait for the client.
final class SentBytes: Sendable {
    private let bytes = Atomic<Int64>(0)
    /// The client's share of the memory for bodies; nil where its streams are counted elsewhere.
    private let memory: SharedBudget.Share?

    init(in memory: SharedBudget.Share? = nil) { self.memory = memory }

    var count: Int64 { bytes.load(ordering: .relaxed) }

    /// True if the client has more in memory than its share: nothing more is written before it has taken what was.
    var isScarce: Bool { memory?.isExceeded ?? false }

    func add(_ count: Int) { bytes.add(Int64(count), ordering: .relaxed) }

    /// Adds bytes of the body once the write that carries them has succeeded.
    func add(_ count: Int, when written: EventLoopFuture<Void>) { written.whenSuccess { self.add(count) } }

    /// The same for bytes that are in memory until then.
    func addHeld(_ count: Int, when written: EventLoopFuture<Void>) {
        memory?.change(by: count)
        written.whenComplete { result in
            self.memory?.change(by: -count)
            if case .success = result { self.add(count) }
        }
    }
}
