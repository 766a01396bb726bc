// The refusal of a write for which the outbox has no room, with what to do about it (docs/storage.md#faults).
import RockpoolCore
import RockpoolStore

extension DataStoreError {
    /// The refusal of a write after `.full` or `.diskFull`.
    var noRoom: Problem { noRoom("nothing of this write was kept") }

    /// The refusal after `.full` or `.diskFull`, which have different remedies.
    /// - Parameter effect: what has become of the request.
    func noRoom(_ effect: String) -> Problem {
        let why =
            self == .diskFull
            ? "the disk of the state directory is full; \(effect); free some space on it"
            : "storage.data_limit is reached; \(effect); \(Problem.roomAdvice)"
        return Problem(.outboxFull, detail: why)
    }
}
