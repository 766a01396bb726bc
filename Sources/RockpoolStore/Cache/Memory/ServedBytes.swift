// The bytes of bodies that hot replies have sent, counted without a lock.
import Synchronization

/// A counter that replies from memory share.
package final class ServedBytes: Sendable {
    private let total = Atomic<Int64>(0)
    private let stale = Atomic<Int64>(0)

    package init() {}

    package var count: Int64 { total.load(ordering: .relaxed) }

    /// The part of `count` that was sent in stale replies.
    package var staleCount: Int64 { stale.load(ordering: .relaxed) }

    /// Adds the body of one reply.
    package func add(_ bytes: Int, isStale: Bool) {
        total.wrappingAdd(Int64(bytes), ordering: .relaxed)
        if isStale { stale.wrappingAdd(Int64(bytes), ordering: .relaxed) }
    }
}
