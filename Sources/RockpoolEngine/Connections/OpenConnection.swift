// One connection, and since when it has been between requests: a number, so that a request takes no lock to move it.
package import NIOCore
import RockpoolCore
import Synchronization

/// A client's connection as the limits see it.
package final class OpenConnection: Sendable {
    let channel: any Channel
    /// Whom it counts against, if anybody.
    let source: IPAddress?
    /// In nanoseconds of uptime.
    let openedAt: UInt64
    private let idleNanoseconds: Atomic<UInt64>
    private let closed = Atomic(false)

    init(_ channel: any Channel, source: IPAddress?) {
        self.channel = channel
        self.source = source
        openedAt = NIODeadline.now().uptimeNanoseconds
        idleNanoseconds = Atomic(openedAt)
    }

    /// In nanoseconds of uptime; the greatest number while it is at work.
    var idleSince: UInt64 { idleNanoseconds.load(ordering: .relaxed) }
    var isOpen: Bool { !closed.load(ordering: .relaxed) }

    /// A request is under way: it makes no room.
    package func noteWork() { idleNanoseconds.store(.max, ordering: .relaxed) }
    /// Nothing is under way: it may have to make room.
    package func noteIdle(since now: NIODeadline) { idleNanoseconds.store(now.uptimeNanoseconds, ordering: .relaxed) }
    /// - Returns: whether it was open.
    func noteClosed() -> Bool { !closed.exchange(true, ordering: .relaxed) }
}
