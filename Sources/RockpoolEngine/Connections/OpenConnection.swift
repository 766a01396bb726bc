// One client connection, with the time since when it is idle as an atomic number, so that a request needs no lock to change it.
package import NIOCore
import RockpoolCore
import Synchronization

/// A client connection as the limits see it. It outlives its channel while it rests (docs/security-model.md#idle-connections).
package final class OpenConnection: Sendable {
    private let link = Mutex<(channel: (any Channel)?, source: IPAddress?)>((nil, nil))
    private let openNanoseconds = Atomic<UInt64>(0)
    private let idleNanoseconds = Atomic<UInt64>(0)
    private let closed = Atomic(false)

    /// Returns connections that are not open yet, whose objects lie side by side: among the objects of its channel each would keep a page of
    /// memory while the connection rests.
    static func batch(_ count: Int) -> [OpenConnection] { (0..<count).map { _ in OpenConnection() } }

    private init() {}

    convenience init(_ channel: any Channel, source: IPAddress?) {
        self.init()
        open(on: channel, from: source)
    }

    /// Called once, before the connection is known to others.
    func open(on channel: any Channel, from source: IPAddress?) {
        link.withLock { $0 = (channel, source) }
        let now = NIODeadline.now().uptimeNanoseconds
        openNanoseconds.store(now, ordering: .relaxed)
        idleNanoseconds.store(now, ordering: .relaxed)
    }

    /// Nil while the connection rests.
    package internal(set) var channel: (any Channel)? {
        get { link.withLock { $0.channel } }
        set { link.withLock { $0.channel = newValue } }
    }
    /// The address that it counts against; nil if it counts against the total only.
    var source: IPAddress? { link.withLock { $0.source } }
    /// In nanoseconds of uptime.
    var openedAt: UInt64 { openNanoseconds.load(ordering: .relaxed) }

    /// In nanoseconds of uptime; the greatest number while it is busy.
    var idleSince: UInt64 { idleNanoseconds.load(ordering: .relaxed) }
    /// False after it was closed, or chosen to be closed at a limit.
    package var isOpen: Bool { !closed.load(ordering: .relaxed) }

    /// Marks the connection as busy, which protects it from being closed at a limit.
    package func noteWork() { idleNanoseconds.store(.max, ordering: .relaxed) }
    /// Marks the connection as idle, so that it may be closed at a limit.
    package func noteIdle(since now: NIODeadline) { idleNanoseconds.store(now.uptimeNanoseconds, ordering: .relaxed) }
    /// - Returns: true if it was open.
    func noteClosed() -> Bool { !closed.exchange(true, ordering: .relaxed) }
}
