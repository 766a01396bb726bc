// A wall clock that stands still until a test moves it (design §4.1).
package import RockpoolCore
import Synchronization

/// The moment every part of one test sees.
package final class ManualClock: Sendable {
    private let moment: Mutex<Timestamp>

    /// - Parameter start: by default 2026-01-01T00:00:00Z.
    package init(_ start: Timestamp = Timestamp(seconds: 1_767_225_600)) { moment = Mutex(start) }

    package var now: Timestamp { moment.withLock { $0 } }

    /// The clock as the engine and the stores are given it.
    package var reading: @Sendable () -> Timestamp { { self.now } }

    package func advance(by span: TimeSpan) { moment.withLock { $0 = $0 + span } }
}
