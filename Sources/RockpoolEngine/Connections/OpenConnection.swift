// One client connection, with the time since when it is idle as an atomic number, so that a request needs no lock to change it.
package import NIOCore
package import RockpoolCore
import Synchronization

/// A client connection as the limits see it. It outlives its channel while it rests (docs/security-model.md#idle-connections).
package final class OpenConnection: Sendable {
    private struct Link {
        var channel: (any Channel)?
        var source: IPAddress?
        var account: ClientAccount?
        /// What is under way on this connection, and counts for its account.
        var work = ExchangeCount()
    }

    private let link = Mutex(Link())
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
    func open(on channel: any Channel, from source: IPAddress?, of account: ClientAccount? = nil) {
        link.withLock { $0 = Link(channel: channel, source: source, account: account) }
        let now = NIODeadline.now().uptimeNanoseconds
        openNanoseconds.store(now, ordering: .relaxed)
        idleNanoseconds.store(now, ordering: .relaxed)
    }

    /// Nil while the connection rests.
    package internal(set) var channel: (any Channel)? {
        get { link.withLock { $0.channel } }
        set { link.withLock { $0.channel = newValue } }
    }
    /// The client, as far as it is known by now; nil where clients share nothing.
    package var account: ClientAccount? { link.withLock { $0.account } }

    /// Notes that the client is known by another account, which takes over what is under way.
    func belongs(to account: ClientAccount) {
        link.withLock { link in
            guard let before = link.account, before !== account else { return }
            before.change(-link.work)
            account.change(link.work)
            link.account = account
        }
    }

    /// Notes something under way that counts for `account`.
    func began(_ kind: ExchangePlace.Kind, of account: ClientAccount) {
        let count = ExchangeCount(kind)
        link.withLock { link in
            link.work += count
            guard let now = link.account, now !== account else { return }
            account.change(-count)
            now.change(count)
        }
    }

    /// Notes the end of something under way.
    func ended(_ kind: ExchangePlace.Kind) {
        let count = -ExchangeCount(kind)
        link.withLock { link in
            link.work += count
            link.account?.change(count)
        }
    }

    /// The ends of the connection as its client has them; empty while it rests.
    var clientEnds: [SystemSocket.Ends] {
        guard let channel, let near = channel.localAddress, let far = channel.remoteAddress, let nearPort = near.port,
            let farPort = far.port,
            let client = far.ipAddress.flatMap({ IPAddress($0) }), let server = near.ipAddress.flatMap({ IPAddress($0) })
        else { return [] }
        return SystemSocket.Ends.ofClient(client, port: farPort, at: server, port: nearPort)
    }
    /// The address that it counts against; nil if it counts against the total only.
    var source: IPAddress? { link.withLock { $0.source } }
    /// In nanoseconds of uptime.
    var openedAt: UInt64 { openNanoseconds.load(ordering: .relaxed) }

    /// In nanoseconds of uptime; the greatest number while it is busy.
    var idleSince: UInt64 { idleNanoseconds.load(ordering: .relaxed) }
    /// False after it was closed, or chosen to be closed at a limit.
    package var isOpen: Bool { !closed.load(ordering: .relaxed) }

    /// Begins something on this connection, which is busy meanwhile.
    /// - Returns: its place; nil where clients share nothing.
    ///
    /// Throws `Refusal` where the client has as much under way as it may.
    package func place(_ kind: ExchangePlace.Kind) throws(Refusal) -> ExchangePlace? {
        if let account {
            guard let place = account.begin(kind, on: self) else { throw .busy }
            noteWork()
            return place
        }
        noteWork()
        return nil
    }

    /// Marks the connection as busy, which protects it from being closed at a limit.
    package func noteWork() { idleNanoseconds.store(.max, ordering: .relaxed) }
    /// Marks the connection as idle, so that it may be closed at a limit.
    package func noteIdle(since now: NIODeadline) { idleNanoseconds.store(now.uptimeNanoseconds, ordering: .relaxed) }
    /// - Returns: true if it was open.
    func noteClosed() -> Bool { !closed.exchange(true, ordering: .relaxed) }
}
