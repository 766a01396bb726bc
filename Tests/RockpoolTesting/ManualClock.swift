// A wall clock that stands still until a test moves it (docs/architecture.md#rules).
package import RockpoolCore
import Synchronization

/// The current time for every part of one test.
package final class ManualClock: Sendable {
    private let state: Mutex<(now: Timestamp, passed: TimeSpan)>

    /// - Parameter start: by default 2026-01-01T00:00:00Z.
    package init(_ start: Timestamp = Timestamp(seconds: 1_767_225_600)) { state = Mutex((start, .zero)) }

    package var now: Timestamp { state.withLock { $0.now } }

    /// The wall clock as a closure, in the form that the engine and the stores take.
    package var reading: @Sendable () -> Timestamp { { self.now } }

    /// The monotonic clock: `set` does not change it.
    package var steady: @Sendable () -> TimeSpan { { self.state.withLock { $0.passed } } }

    package func advance(by span: TimeSpan) { state.withLock { $0 = ($0.now + span, $0.passed + span) } }

    /// Sets the wall clock forward, as an administrator would; the monotonic clock does not move.
    package func set(ahead span: TimeSpan) { state.withLock { $0.now = $0.now + span } }
}
