// The queue of writers that wait for cache space: first come, first served, while a single eviction run frees it (docs/storage.md#ledger,
// docs/storage.md#eviction).
import DequeModule
import RockpoolCore
import Synchronization

/// The queue in front of the ledger. Space freed by a run goes to the next writer in the queue, not to a writer that arrives at that
/// moment, so that no two runs evict for the same need.
final class SpaceQueue: Sendable {
    private struct State {
        var waiting: Deque<(room: SpaceRequest, answer: CheckedContinuation<Bool, Never>)> = []
        /// True while a run is active; the run calls `next` until `next` returns nil.
        var isRunning = false
    }

    private let footprint: Footprint
    private let bodies: BodyFiles
    private let state = Mutex(State())

    init(footprint: Footprint, bodies: BodyFiles) {
        self.footprint = footprint
        self.bodies = bodies
    }

    /// Reserves space at once when the queue is empty and the space is available; otherwise waits in the queue for it.
    /// - Parameter run: called when space must be freed and no run is active; the run must call `next`.
    /// - Returns: false when eviction cannot free enough space.
    func reserve(_ room: SpaceRequest, orStart run: () -> Void) async -> Bool {
        await withCheckedContinuation { continuation in
            let isDue = state.withLock { state in
                if state.waiting.isEmpty, let answer = answer(to: room) {
                    continuation.resume(returning: answer)
                    return false
                }
                state.waiting.append((room, continuation))
                defer { state.isRunning = true }
                return !state.isRunning
            }
            if isDue { run() }
        }
    }

    /// Marks a run as active.
    /// - Returns: false when one is active already.
    func startRun() -> Bool {
        state.withLock { state in
            defer { state.isRunning = true }
            return !state.isRunning
        }
    }

    /// Answers the writers at the front of the queue while their reservations are granted or refused.
    /// - Returns: the space that the next writer needs; `SpaceRequest()` when the queue is empty but the low mark is not reached yet; nil when the
    ///   run is over.
    func next() -> SpaceRequest? {
        state.withLock { state in
            while let first = state.waiting.first {
                guard let answer = answer(to: first.room) else { return first.room }
                state.waiting.removeFirst().answer.resume(returning: answer)
            }
            state.isRunning = shortfall(for: SpaceRequest()) > 0 || missing(for: SpaceRequest()) > 0
            return state.isRunning ? SpaceRequest() : nil
        }
    }

    /// Refuses the first writer in the queue, because no further entry can be evicted.
    /// - Returns: false when the queue was empty, which ends the run.
    func giveUp() -> Bool {
        state.withLock { state in
            let first = state.waiting.popFirst()
            first?.answer.resume(returning: false)
            state.isRunning = first != nil
            return state.isRunning
        }
    }

    /// Returns the bytes that must still be removed before `room` can be granted.
    func shortfall(for room: SpaceRequest) -> Int64 { footprint.ledger.shortfall(for: room, leaving: bodies.leavingBytes) }

    /// Returns by how many bytes the disk usage with `room` would exceed the limit, free pages included.
    func missing(for room: SpaceRequest) -> Int64 { footprint.ledger.missing(for: room) }

    private func answer(to room: SpaceRequest) -> Bool? {
        switch footprint.reserve(room) {
        case .granted: true
        case .refused: false
        case .evict: nil
        }
    }
}
