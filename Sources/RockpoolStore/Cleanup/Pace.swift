// How work that nobody waits for leaves the processor to answers: short turns with rests between while anything is asked of the cache,
// long ones when nothing is (storage.md §4: hits are not disturbed).
import Glibc
import RockpoolCore
import Synchronization

/// The pace of eviction, cleanup and compaction in one cache.
///
/// A hit takes a fraction of a millisecond, so a turn beside hits takes no more than about one: that is the most that a hit on a machine
/// with few cores then waits for it.
final class Pace: Sendable {
    /// How much may be done before others are looked at again.
    enum Turn: Sendable {
        /// Somebody is being answered.
        case short
        /// Nobody is, or somebody waits for this very work.
        case long

        /// Time of work, after which nothing further is begun.
        var time: Duration { self == .short ? .milliseconds(1) : .milliseconds(10) }
        /// Rows, of those that a long turn takes.
        func rows(of most: Int) -> Int { self == .short ? min(8, most) : most }
        /// Pages given back, of those that a long turn moves.
        func pages(of most: Int) -> Int { self == .short ? min(16, most) : most }
    }

    /// After a short turn: the work has a fifth of one core then, at most.
    private static let rest: Duration = .milliseconds(4)
    /// For so long after something was asked it is expected that more is.
    private static let patience: TimeSpan = .milliseconds(200)

    private let lookups: @Sendable () -> UInt64
    private let clock: @Sendable () -> Timestamp
    private let last: Mutex<(lookups: UInt64, changed: Timestamp?)>

    /// - Parameter lookups: counts what was asked of the cache.
    init(clock: @escaping @Sendable () -> Timestamp, lookups: @escaping @Sendable () -> UInt64) {
        self.clock = clock
        self.lookups = lookups
        last = Mutex((lookups(), nil))
    }

    /// To be asked before each turn. Rests first where others are at it.
    func next() async -> Turn {
        guard isAsked else { return .long }
        try? await Task.sleep(for: Self.rest)
        return .short
    }

    /// The same inside a long statement that cannot be left: rests on this thread, thrice as long as has been worked.
    func rest(after worked: Duration) {
        guard isAsked else { return }
        usleep(UInt32(clamping: 3 * worked.components.attoseconds / 1_000_000_000_000))
    }

    private var isAsked: Bool {
        let (count, now) = (lookups(), clock())
        return last.withLock { last in
            if count != last.lookups { last = (count, now) }
            return last.changed.map { (.zero..<Self.patience).contains(now - $0) } ?? false
        }
    }
}
