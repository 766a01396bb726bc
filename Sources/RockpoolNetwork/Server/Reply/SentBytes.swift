// The number of a reply's body bytes that were written to its client.
import NIOCore
import Synchronization

/// Counts the bytes of one reply as their writes succeed.
final class SentBytes: Sendable {
    private let bytes = Atomic<Int64>(0)

    var count: Int64 { bytes.load(ordering: .relaxed) }

    func add(_ count: Int) { bytes.add(Int64(count), ordering: .relaxed) }

    /// Adds bytes of the body once the write that carries them has succeeded.
    func add(_ count: Int, when written: EventLoopFuture<Void>) { written.whenSuccess { self.add(count) } }
}
