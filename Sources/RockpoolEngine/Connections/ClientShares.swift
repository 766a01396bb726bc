// What clients share, and what each of them has of it (docs/security-model.md#shares-of-clients).
import Dispatch
import NIOCore
package import RockpoolCore
import Synchronization

/// A limit that clients share by `FairShare`. Counted without locks: a limit may be passed by what two threads take at one moment.
package final class SharedBudget: Sendable {
    /// The bytes of bodies in the memory of the process: requests that are being collected, and what waits for slow readers.
    package static let bodies = SharedBudget(limit: .mib(24))

    package let limit: Int
    private let count = Atomic(0)

    package init(limit: Int) { self.limit = limit }

    /// What all have together.
    package var used: Int { count.load(ordering: .relaxed) }
    /// True if more than a quarter is in use: then it matters who a new client is.
    package var isPressed: Bool { used > limit / 4 }
    /// True if more than a sixteenth is in use: then it may soon matter who the clients are.
    var isUsed: Bool { used > limit / 16 }

    package func share() -> Share { Share(of: self) }

    /// What one client has.
    package final class Share: Sendable {
        /// The share of Rockpool itself in the memory for bodies.
        package static let own = SharedBudget.bodies.share()
        /// The number of bytes that each body may hold while its client has more than its share: two of libcurl's buffers.
        package static let least = Int.kib(32)

        package let whole: SharedBudget
        private let count = Atomic(0)

        fileprivate init(of whole: SharedBudget) { self.whole = whole }

        deinit { whole.count.subtract(held, ordering: .relaxed) }

        package var held: Int { count.load(ordering: .relaxed) }

        /// Takes `amount` if the client may have it.
        package func take(_ amount: Int) -> Bool {
            let held = count.add(amount, ordering: .relaxed).oldValue
            let used = whole.count.add(amount, ordering: .relaxed).oldValue
            if FairShare.admits(amount, held: held, used: used, limit: whole.limit) { return true }
            change(by: -amount)
            return false
        }

        /// Counts what is there whether the client may have it or not; a negative amount is given back.
        package func change(by amount: Int) {
            count.add(amount, ordering: .relaxed)
            whole.count.add(amount, ordering: .relaxed)
        }

        /// True if the client has more than its share: each of its bodies must then hold less.
        package var isExceeded: Bool { FairShare.isExceeded(held: held, used: whole.used, limit: whole.limit) }
    }
}

/// Bytes of one exchange that stay in memory until its end.
package final class HeldBytes: Sendable {
    /// Of an exchange without a body.
    static let none = HeldBytes(of: .own)

    private let share: SharedBudget.Share
    private let count = Atomic(0)

    package init(of share: SharedBudget.Share) { self.share = share }

    deinit { release() }

    /// - Returns: false if the client has no room for as many more.
    package func take(_ bytes: Int) -> Bool {
        guard share.take(bytes) else { return false }
        count.add(bytes, ordering: .relaxed)
        return true
    }

    /// Gives all back.
    package func release() {
        let bytes = count.exchange(0, ordering: .relaxed)
        if bytes > 0 { share.change(by: -bytes) }
    }
}

/// What the clients of all listeners share.
package final class ClientShares: Sendable {
    private struct Weak { weak var account: ClientAccount? }

    /// The shortest time between two searches for a tunnel that may be closed, after one that found none.
    private static let searchPause = TimeAmount.milliseconds(100)

    /// Exchanges under way: requests until their reply is sent, streams, tunnels.
    let exchanges: SharedBudget
    /// Connections with something under way, which are not closed for others.
    let busy: SharedBudget
    /// Of the busy ones those with requests, and tunnels: neither kind takes all, nor does a client take all of a kind.
    let requests: SharedBudget
    let tunnels: SharedBudget
    let memory: SharedBudget
    private let accounts = Mutex<[ClientID: Weak]>([:])
    private let openTunnels = Mutex<(open: [ObjectIdentifier: ExchangePlace], searchedAt: NIODeadline)>(([:], .distantPast))
    private let pressure = Mutex<(@Sendable (Bool) -> Void)?>(nil)

    /// - Parameters:
    ///   - exchanges: the limit of exchanges under way.
    ///   - connections: the limit of client connections.
    package init(exchanges: Int, connections: Int, memory: SharedBudget = .bodies) {
        self.exchanges = SharedBudget(limit: exchanges)
        busy = SharedBudget(limit: connections)
        let kindLimit = FairShare.ofKind(limit: connections)
        (requests, tunnels) = (SharedBudget(limit: kindLimit), SharedBudget(limit: kindLimit))
        self.memory = memory
    }

    /// True if it matters who a new client is.
    package var arePressed: Bool { exchanges.isPressed || busy.isPressed || memory.isPressed }
    /// True if nothing is under way.
    package var isQuiet: Bool { exchanges.used == 0 && busy.used == 0 }
    fileprivate var areUsed: Bool { exchanges.isUsed || busy.isUsed || memory.isUsed }

    /// Sets the listener that is called when a client of this machine whose process is not known begins something while much is in use, with
    /// true if there was no room for it.
    func onPressure(_ listener: @escaping @Sendable (_ isRefused: Bool) -> Void) { pressure.withLock { $0 = listener } }

    package func account(of client: ClientID) -> ClientAccount {
        accounts.withLock { accounts in
            if let account = accounts[client]?.account { return account }
            let account = ClientAccount(client, in: self)
            accounts[client] = Weak(account: account)
            return account
        }
    }

    fileprivate func forget(_ client: ClientID) {
        accounts.withLock { if let place = $0[client], place.account == nil { $0[client] = nil } }
    }

    fileprivate func tellPressure(isRefused: Bool) { pressure.withLock(\.self)?(isRefused) }

    fileprivate func track(_ tunnel: ExchangePlace) { openTunnels.withLock { $0.open[ObjectIdentifier(tunnel)] = tunnel } }

    fileprivate func untrack(_ tunnel: ExchangePlace) { openTunnels.withLock { _ = $0.open.removeValue(forKey: ObjectIdentifier(tunnel)) } }

    /// Closes a tunnel that gives way to a client.
    /// - Returns: false if there is none.
    fileprivate func closeSilentTunnel(for client: ClientID, kind: ExchangePlace.Kind, now: NIODeadline = .now()) -> Bool {
        let hasRoom = exchanges.used < exchanges.limit && busy.used < busy.limit
        let kindHasRoom = kind != .tunnel || tunnels.used < tunnels.limit
        let closed = openTunnels.withLock { state -> ExchangePlace? in
            guard !state.open.isEmpty, now - state.searchedAt >= Self.searchPause else { return nil }
            let open = Array(state.open.values)
            let silent = open.map { SilentTunnel(client: $0.client, silence: $0.silence(at: now)) }
            guard let index = SilentTunnel.toClose(among: silent, for: client, isOwnShare: hasRoom && kindHasRoom) else {
                state.searchedAt = now
                return nil
            }
            state.open[ObjectIdentifier(open[index])] = nil
            return open[index]
        }
        closed?.giveWay()
        return closed != nil
    }
}

/// One client, and what it has of what is shared. Kept by its connections and by what it has under way.
package final class ClientAccount: Sendable {
    package let client: ClientID
    package let memory: SharedBudget.Share
    private let exchanges: SharedBudget.Share
    private let busy: SharedBudget.Share
    private let requests: SharedBudget.Share
    private let tunnels: SharedBudget.Share
    private let shares: ClientShares
    /// True if the system may say which process it is.
    let mayBeNamed: Bool

    fileprivate init(_ client: ClientID, in shares: ClientShares) {
        (self.client, self.shares) = (client, shares)
        (memory, exchanges, busy) = (shares.memory.share(), shares.exchanges.share(), shares.busy.share())
        (requests, tunnels) = (shares.requests.share(), shares.tunnels.share())
        mayBeNamed = if case .address(let address) = client { address.meansLoopback } else { false }
    }

    deinit { shares.forget(client) }

    /// Begins something for the client. A silent tunnel is closed where there is no room otherwise.
    /// - Returns: nil if the client has no room.
    package func begin(_ kind: ExchangePlace.Kind) -> ExchangePlace? { begins(kind) ? ExchangePlace(kind, of: self, on: nil) : nil }

    /// As `begin`, for one of the client's connections: what it has under way moves to another account with it.
    package func begin(_ kind: ExchangePlace.Kind, on connection: OpenConnection) -> ExchangePlace? {
        guard begins(kind) else { return nil }
        connection.began(kind, of: self)
        return ExchangePlace(kind, of: self, on: connection)
    }

    private func begins(_ kind: ExchangePlace.Kind) -> Bool {
        if mayBeNamed, shares.areUsed { shares.tellPressure(isRefused: false) }
        if take(kind) || shares.closeSilentTunnel(for: client, kind: kind) && take(kind) { return true }
        if mayBeNamed { shares.tellPressure(isRefused: true) }
        return false
    }

    private func take(_ kind: ExchangePlace.Kind) -> Bool {
        guard !kind.isExchange || exchanges.take(1) else { return false }
        guard kind.isBusy else { return true }
        let ofKind = kind == .tunnel ? tunnels : requests
        if ofKind.take(1) {
            if busy.take(1) { return true }
            ofKind.change(by: -1)
        }
        if kind.isExchange { exchanges.change(by: -1) }
        return false
    }

    /// Counts what is under way whether the client may have it or not; negative amounts are given back.
    func change(_ amount: ExchangeCount) {
        exchanges.change(by: amount.exchanges)
        busy.change(by: amount.requests + amount.tunnels)
        requests.change(by: amount.requests)
        tunnels.change(by: amount.tunnels)
    }

    /// Counts a tunnel among those that may be closed.
    fileprivate func opened(_ tunnel: ExchangePlace) { shares.track(tunnel) }

    fileprivate func ended(_ place: ExchangePlace) {
        if place.kind == .tunnel { shares.untrack(place) }
        if let connection = place.connection { connection.ended(place.kind) } else { change(-ExchangeCount(place.kind)) }
    }
}

/// What is under way, as the limits count it.
struct ExchangeCount: Equatable {
    var exchanges = 0
    /// Connections that requests keep busy.
    var requests = 0
    var tunnels = 0

    init() {}

    init(_ kind: ExchangePlace.Kind) {
        exchanges = kind.isExchange ? 1 : 0
        tunnels = kind == .tunnel ? 1 : 0
        requests = kind.isBusy ? 1 - tunnels : 0
    }

    static func += (left: inout ExchangeCount, right: ExchangeCount) {
        left.exchanges += right.exchanges
        left.requests += right.requests
        left.tunnels += right.tunnels
    }

    static prefix func - (count: ExchangeCount) -> ExchangeCount {
        var negative = ExchangeCount()
        (negative.exchanges, negative.requests, negative.tunnels) = (-count.exchanges, -count.requests, -count.tunnels)
        return negative
    }
}

/// Something under way for a client. It counts until it is released.
package final class ExchangePlace: Sendable {
    package enum Kind: Sendable {
        /// A request on a connection of its own.
        case request
        /// A stream of a connection that has others.
        case stream
        /// The connection of streams, while there are any.
        case streams
        /// A connection whose bytes are passed on.
        case tunnel

        fileprivate var isExchange: Bool { self != .streams }
        fileprivate var isBusy: Bool { self != .stream }
    }

    fileprivate let kind: Kind
    private let account: ClientAccount
    /// Nil if it is not one of a connection.
    fileprivate let connection: OpenConnection?
    private let isReleased = Atomic(false)
    /// When something passed through the tunnel last, in nanoseconds of uptime; the greatest number before it is open.
    private let usedAt = Atomic(UInt64.max)
    private let closing = Mutex<(@Sendable () -> Void)?>(nil)

    fileprivate init(_ kind: Kind, of account: ClientAccount, on connection: OpenConnection?) {
        (self.kind, self.account, self.connection) = (kind, account, connection)
    }

    deinit { release() }

    /// Has an effect once.
    package func release() {
        if !isReleased.exchange(true, ordering: .relaxed) { account.ended(self) }
    }

    /// Notes that the tunnel is open. From now on it counts until it is released.
    /// - Parameter close: ends it, from any thread.
    package func opened(_ close: @escaping @Sendable () -> Void) {
        closing.withLock { $0 = close }
        noteUse()
        account.opened(self)
    }

    /// The client as it is known by now.
    fileprivate var client: ClientID { (connection?.account ?? account).client }

    /// Notes that bytes pass.
    package func noteUse() { usedAt.store(NIODeadline.now().uptimeNanoseconds, ordering: .relaxed) }

    fileprivate func silence(at now: NIODeadline) -> TimeSpan {
        let (used, now) = (usedAt.load(ordering: .relaxed), now.uptimeNanoseconds)
        return used < now ? .milliseconds(Int64(clamping: (now - used) / 1_000_000)) : .zero
    }

    fileprivate func giveWay() {
        release()
        closing.withLock(\.self)?()
    }
}

/// Asks the system which processes are behind connections of this machine: on its own thread, and at most half of the time, because each
/// look may read the descriptors of all processes.
package final class ClientLookup: Sendable {
    package typealias Finder = @Sendable (_ connections: [[SystemSocket.Ends]]) -> [ClientID?]

    private struct State {
        var asked: [(connections: [OpenConnection], done: @Sendable () -> Void)] = []
        var isRunning = false
    }

    /// The shortest and the longest time between two looks.
    private static let pause = Duration.milliseconds(10)...Duration.seconds(1)
    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "rockpool.clients", qos: .utility)
    private let shares: ClientShares
    private let find: Finder

    init(_ shares: ClientShares, find: @escaping Finder) { (self.shares, self.find) = (shares, find) }

    /// - Parameter done: called when the system was asked, on another thread. A connection that is not found keeps its account.
    func ask(about connections: [OpenConnection], done: @escaping @Sendable () -> Void = {}) {
        let isFirst = state.withLock { state in
            state.asked.append((connections, done))
            defer { state.isRunning = true }
            return !state.isRunning
        }
        if isFirst { queue.async { self.look() } }
    }

    private func look() {
        let asked = state.withLock { state in
            defer { state.asked = [] }
            if state.asked.isEmpty { state.isRunning = false }
            return state.asked
        }
        guard !asked.isEmpty else { return }
        let began = ContinuousClock.now
        let connections = asked.flatMap(\.connections).filter { $0.account?.mayBeNamed == true }
        for (connection, client) in zip(connections, find(connections.map(\.clientEnds))) {
            if let client { connection.belongs(to: shares.account(of: client)) }
        }
        for (_, done) in asked { done() }
        let took: Duration = began.duration(to: .now)
        let pause = min(max(took, Self.pause.lowerBound), Self.pause.upperBound)
        queue.asyncAfter(deadline: .now() + .nanoseconds(Int(pause / .nanoseconds(1)))) { self.look() }
    }
}
