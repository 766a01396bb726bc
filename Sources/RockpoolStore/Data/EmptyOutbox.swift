// The knowledge that nothing waits in the outbox (docs/outbox.md#live-writes).
import Synchronization

/// Remembers that the outbox was found without open operations: while it is known, a live write asks no database for earlier ones.
final class EmptyOutbox: Sendable {
    private let taken = Atomic(0)
    /// The value of `taken` before the read that found none.
    private let emptyAt = Atomic(-1)

    /// True if no operation was taken since the outbox was found empty.
    var isKnown: Bool { emptyAt.load(ordering: .acquiring) == taken.load(ordering: .acquiring) }

    /// The mark of a read that begins now.
    var mark: Int { taken.load(ordering: .acquiring) }

    /// Records that a read with this mark has found no open operation.
    func note(at mark: Int) { emptyAt.store(mark, ordering: .releasing) }

    /// Records that an operation may have been taken. Call it after the commit, and before the write is acknowledged.
    func noteTaken() { taken.add(1, ordering: .acquiringAndReleasing) }
}

extension DataStore {
    /// True if it is known that the outbox has no open operation.
    package var isKnownEmpty: Bool { empty.isKnown }
}
