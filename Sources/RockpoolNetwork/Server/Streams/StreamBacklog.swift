// The unsent bytes of one HTTP/2 connection, shared by its streams, which count them, and by the reply writers.
import NIOCore
import RockpoolCore
import RockpoolEngine
import Synchronization

/// The bytes that one client has not received yet. The streams count on the event loop; a reply's writer reads from any thread.
final class StreamBacklog: Sendable {
    private let state: Mutex<UnsentBytes>
    private let budget: SharedBudget.Share

    /// - Parameters:
    ///   - patience: the longest time a client may receive nothing on any stream.
    ///   - budget: the client's share of the memory for bodies.
    init(patience: TimeAmount, budget: SharedBudget.Share = .own) {
        state = Mutex(UnsentBytes(patience: patience))
        self.budget = budget
    }

    deinit { budget.change(by: -state.withLock(\.bytes)) }

    var patience: TimeAmount { state.withLock(\.patience) }

    func open() { state.withLock { $0.open() } }

    func close() { state.withLock { $0.close() } }

    func add(_ count: Int, to before: Int) {
        budget.change(by: count)
        state.withLock { $0.add(count, to: before, now: .now()) }
    }

    func take(_ count: Int, leaving rest: Int) {
        budget.change(by: -count)
        state.withLock { $0.take(count, leaving: rest, now: .now()) }
    }

    func drop(_ count: Int, leaving rest: Int) {
        budget.change(by: -count)
        state.withLock { $0.drop(count, leaving: rest) }
    }

    func received() { state.withLock { $0.received(now: .now()) } }

    func isStuck(at now: NIODeadline) -> Bool { state.withLock { $0.isStuck(at: now) } }

    /// Returns the size of the next piece of a file for a stream with `taken` bytes of it received by the client.
    func piece(after taken: Int64) -> Int {
        let isScarce = budget.isExceeded
        return state.withLock { $0.piece(after: taken, isScarce: isScarce) }
    }
}
