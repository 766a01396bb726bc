// The refusal of a write for which the outbox has no room, with what to do about it (docs/storage.md#faults).
import RockpoolCore
import RockpoolStore

extension DataStoreError {
    /// The refusal of a write after `.full` or `.diskFull`, which have different remedies.
    var noRoom: Problem {
        let why =
            self == .diskFull
            ? "the disk of the state directory is full; nothing of this write was kept; free some space on it"
            : "storage.data_limit is reached; nothing of this write was kept; \(Problem.roomAdvice)"
        return Problem(.outboxFull, detail: why)
    }
}
