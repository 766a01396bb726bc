// One client connection, with the time since when it is idle as an atomic number, so that a request needs no lock to change it.
package import NIOCore
import RockpoolCore
import Synchronization

/// A client connection as the limits see it.
package final class OpenConnection: Sendable {
    let channel: any Channel
    /// The address that it counts against; nil if it counts against the total only.
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

    /// In nanoseconds of uptime; the greatest number while it is busy.
    var idleSince: UInt64 { idleNanoseconds.load(ordering: .relaxed) }
    var isOpen: Bool { !closed.load(ordering: .relaxed) }

    /// Marks the connection as busy, which protects it from being closed at a limit.
    package func noteWork() { idleNanoseconds.store(.max, ordering: .relaxed) }
    /// Marks the connection as idle, so that it may be closed at a limit.
    package func noteIdle(since now: NIODeadline) { idleNanoseconds.store(now.uptimeNanoseconds, ordering: .relaxed) }
    /// - Returns: true if it was open.
    func noteClosed() -> Bool { !closed.exchange(true, ordering: .relaxed) }
}
