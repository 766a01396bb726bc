// What one upstream is given at once: nothing while it is away or asks for quiet, then one, two, four … (outbox.md §2.5).
import HeapModule

/// The door to one upstream: a breaker with a ramp.
struct UpstreamGate: Sendable {
    /// Operations under way to one upstream at once: a slow one holds back no other.
    static let widest = 32

    private(set) var isReachable = false
    /// It has asked for a pause (429, 503) until then.
    private(set) var pausedUntil: Timestamp?
    /// How many may be under way; doubles with every answer, falls back to one when nobody answers.
    private(set) var width = 1
    /// Under way now.
    private(set) var running = 0
    /// Open operations that would go if they could.
    var waiting = 0
    /// Those that may go, first in rank first. Tickets may be out of date.
    var ready = Heap<ReplayMachine.Ticket>()

    mutating func forgetOperations() { (running, waiting, ready) = (0, 0, Heap()) }

    mutating func mayPass(now: Timestamp) -> Bool {
        if let pausedUntil, pausedUntil <= now { self.pausedUntil = nil }
        return isReachable && running < width && pausedUntil == nil
    }

    mutating func turned(isReachable: Bool) {
        if isReachable != self.isReachable { width = 1 }
        self.isReachable = isReachable
    }

    mutating func left() { running += 1 }

    mutating func came() { running = max(0, running - 1) }

    mutating func answered() { width = min(Self.widest, width * 2) }

    mutating func failed() { width = 1 }

    /// The clock has been.
    mutating func setBack(by span: TimeSpan) { pausedUntil = pausedUntil.map { $0 - span } }

    mutating func pause(until moment: Timestamp) {
        pausedUntil = max(pausedUntil ?? moment, moment)
        width = 1
    }
}
