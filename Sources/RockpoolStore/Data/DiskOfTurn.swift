// The disk as it was when the writer's turn began, so that a group of jobs asks for it once (docs/storage.md#ledger).
import Synchronization

/// What the first job of a turn has measured.
final class DiskOfTurn: Sendable {
    /// Bytes of the disk.
    struct Measured {
        /// Free, without what the jobs of the turn have taken since.
        var free: Int64
        /// The part of the reserve file that is still to be written.
        let owed: Int64
        /// True if there is room for more than one turn can take.
        let isAmple: Bool
    }

    private let state = Mutex<(turn: Int, measured: Measured?)>((-1, nil))

    /// Returns what was measured in this turn (`CommitQueue.turns`); nil for its first job.
    func measured(in turn: Int) -> Measured? { state.withLock { $0.turn == turn ? $0.measured : nil } }

    func note(_ measured: Measured, in turn: Int) { state.withLock { $0 = (turn, measured) } }
}
