// The engine's belief in the wall clock: doubted after a jump, confirmed by upstreams (docs/storage.md#clock).
import HTTPTypes
package import RockpoolCore
import Synchronization

/// `ClockTrust` behind a lock, with the clock that nobody sets.
package final class ClockWatch: Sendable {
    private let trust: Mutex<ClockTrust>
    private let steady: @Sendable () -> TimeSpan

    /// - Parameter steady: a clock that goes on while the machine sleeps and is never set; nil: the system's.
    init(wall: Timestamp, steady: (@Sendable () -> TimeSpan)?) {
        let start = ContinuousClock.now
        let steady = steady ?? { TimeSpan(milliseconds: Int64((ContinuousClock.now - start) / .milliseconds(1))) }
        self.steady = steady
        trust = Mutex(ClockTrust(lastSeen: nil, wall: wall, steady: steady()))
    }

    /// Begins with what the last run left: a clock that is more than a day past it has to be confirmed first.
    package func begin(lastSeen: Timestamp?, wall: Timestamp) {
        trust.withLock { $0 = ClockTrust(lastSeen: lastSeen, wall: wall, steady: steady()) }
    }

    /// Looks at both clocks.
    /// - Returns: whether anything may go for its age.
    func observe(_ wall: Timestamp) -> Bool { trust.withLock { $0.observe(wall: wall, steady: steady()) } }

    /// Takes an upstream's word for what time it is.
    /// - Returns: whether that has ended a doubt.
    func confirm(by head: ResponseHead, wall: Timestamp) -> Bool {
        trust.withLock { trust in
            guard trust.doubt != nil, let date = head.fields[.date].flatMap({ HTTPDate.parse($0) }) else { return false }
            trust.confirm(date, wall: wall)
            return trust.doubt == nil
        }
    }
}
