// Who waits for room in the cache: first come, first served, while a single run of eviction makes it (storage.md §2, §4).
import DequeModule
import RockpoolCore
import Synchronization

/// The line in front of the ledger. Room that one run has made goes to the next in line, not to whoever asks at that moment, so that
/// nobody evicts twice for the same need.
final class RoomQueue: Sendable {
    private struct State {
        var waiting: Deque<(room: Room, answer: CheckedContinuation<Bool, Never>)> = []
        /// A run is under way; it asks `next` until that says to stop.
        var isRunning = false
    }

    private let footprint: Footprint
    private let bodies: BodyFiles
    private let state = Mutex(State())

    init(footprint: Footprint, bodies: BodyFiles) {
        self.footprint = footprint
        self.bodies = bodies
    }

    /// Reserves at once where nobody waits and the room is there; else in turn, when it is.
    /// - Parameter run: called when room has to be made and no run is under way; it must ask `next`.
    /// - Returns: false when eviction cannot make the room.
    func reserve(_ room: Room, orStart run: () -> Void) async -> Bool {
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

    /// Whether a run may begin with nobody waiting for it; if so, it has.
    func startRun() -> Bool {
        state.withLock { state in
            defer { state.isRunning = true }
            return !state.isRunning
        }
    }

    /// Serves those in front who fit by now, or never will.
    /// - Returns: what the next in line wants, nothing when nobody waits but the low mark is yet to be reached; nil: the run is over.
    func next() -> Room? {
        state.withLock { state in
            while let first = state.waiting.first {
                guard let answer = answer(to: first.room) else { return first.room }
                state.waiting.removeFirst().answer.resume(returning: answer)
            }
            state.isRunning = shortfall(for: Room()) > 0 || missing(for: Room()) > 0
            return state.isRunning ? Room() : nil
        }
    }

    /// Nothing is left that could go: the first in line goes without.
    /// - Returns: whether there was one; if not, the run is over.
    func giveUp() -> Bool {
        state.withLock { state in
            let first = state.waiting.popFirst()
            first?.answer.resume(returning: false)
            state.isRunning = first != nil
            return state.isRunning
        }
    }

    /// What has yet to be removed for somebody who wants `room`.
    func shortfall(for room: Room) -> Int64 { footprint.ledger.shortfall(for: room, leaving: bodies.leavingBytes) }

    /// By how much too much the disk would take then, free pages included.
    func missing(for room: Room) -> Int64 { footprint.ledger.missing(for: room) }

    private func answer(to room: Room) -> Bool? {
        switch footprint.reserve(room) {
        case .granted: true
        case .refused: false
        case .evict: nil
        }
    }
}
