// The unsent bytes of one HTTP/2 connection, shared by its streams, which count them, and by those who write replies.
import NIOCore
import RockpoolEngine
import Synchronization

/// What one client has not taken. The streams count on the event loop; a reply's writer asks from anywhere.
final class StreamBacklog: Sendable {
    /// Bytes that all HTTP/2 clients of the process may leave unsent before files are read for them by the least piece.
    static let process = BodyPipe.Budget(bytes: 16 * 1024 * 1024)

    private let state: Mutex<UnsentBytes>
    private let budget: BodyPipe.Budget

    /// - Parameters:
    ///   - patience: how long a client may take nothing of any stream.
    ///   - budget: shared with other connections.
    init(patience: TimeAmount, budget: BodyPipe.Budget = StreamBacklog.process) {
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

    func isStuck(at now: NIODeadline) -> Bool { state.withLock { $0.isStuck(at: now) } }

    /// Bytes of the next piece of a file for a stream whose client has taken `taken` bytes of it.
    func piece(after taken: Int64) -> Int {
        let isScarce = budget.isExceeded
        return state.withLock { $0.piece(after: taken, isScarce: isScarce) }
    }
}
