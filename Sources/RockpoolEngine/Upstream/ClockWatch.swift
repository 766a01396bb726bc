// The trust in the wall clock: lost after a jump, restored by an upstream's `Date` (docs/storage.md#clock).
import HTTPTypes
package import RockpoolCore
import Synchronization

/// `ClockTrust` behind a lock, with a monotonic clock.
package final class ClockWatch: Sendable {
    private let trust: Mutex<ClockTrust>
    private let steady: @Sendable () -> TimeSpan

    /// - Parameter steady: a monotonic clock that also runs while the machine sleeps; nil selects the system's.
    init(wall: Timestamp, steady: (@Sendable () -> TimeSpan)?) {
        let start = ContinuousClock.now
        let steady = steady ?? { TimeSpan(milliseconds: Int64((ContinuousClock.now - start) / .milliseconds(1))) }
        self.steady = steady
        trust = Mutex(ClockTrust(lastSeen: nil, wall: wall, steady: steady()))
    }

    /// Starts from the last run's time: a wall clock more than a day ahead of it must be confirmed first.
    package func begin(lastSeen: Timestamp?, wall: Timestamp) {
        trust.withLock { $0 = ClockTrust(lastSeen: lastSeen, wall: wall, steady: steady()) }
    }

    /// Compares both clocks.
    /// - Returns: true if data may be removed because of its age.
    func observe(_ wall: Timestamp) -> Bool { trust.withLock { $0.observe(wall: wall, steady: steady()) } }

    /// Confirms the wall clock by the `Date` of an upstream's response.
    /// - Returns: true if this ended a doubt.
    func confirm(by head: ResponseHead, wall: Timestamp) -> Bool {
        trust.withLock { trust in
            guard trust.doubt != nil, let date = head.fields[.date].flatMap({ HTTPDate.parse($0) }) else { return false }
            trust.confirm(date, wall: wall)
            return trust.doubt == nil
        }
    }
}
