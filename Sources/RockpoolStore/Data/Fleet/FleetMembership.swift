// The thread that keeps this node in its fleet: it connects, renews the lease, reads the feed, and takes over from the dead
// (docs/fleet.md#leases).
import Dispatch
import Glibc
import Logging
import RockpoolCore
import Synchronization

/// Runs on a thread of its own, because libpq blocks.
final class FleetMembership: Sendable {
    /// What the shared database makes necessary.
    enum Notice: Sendable {
        /// Connected, with a lease; operations of a lease before may have been in flight.
        case joined
        /// Other nodes have changed rows.
        case changed
        /// The lease of another node has ended.
        case expired
        /// This node keeps writes that it could hand over.
        case held
    }

    struct State {
        var isStopping = false
        /// The settings of this node; nil before they are known.
        var settings: AgreedSettings?
        var facts = FleetStanding()
        /// The highest epoch that this process may have registered; nil before the first.
        var epoch: Int64?
    }

    private static let pollInterval = Duration.milliseconds(250)
    private static let pause = Duration.milliseconds(500)
    private static let pruneInterval = Duration.seconds(600)

    let replica: FleetReplica
    /// The address of the database.
    private let url: @Sendable () throws -> String
    /// A hash of the installation's secret, which all nodes have in common.
    let keyMark: String
    private let name: String
    private let clock: @Sendable () -> Timestamp
    private let notify: @Sendable (Notice) -> Void
    let state = Mutex(State())
    private let queue = DispatchQueue(label: "rockpool.fleet")

    init(
        replica: FleetReplica, url: @escaping @Sendable () throws -> String, name: String, keyMark: String,
        clock: @escaping @Sendable () -> Timestamp, notify: @escaping @Sendable (Notice) -> Void
    ) {
        (self.replica, self.url, self.name, self.keyMark, self.clock, self.notify) = (replica, url, name, keyMark, clock, notify)
    }

    var standing: FleetStanding {
        var standing = state.withLock(\.facts)
        standing.held = replica.held
        standing.leaseAge = replica.log.lease.map { .now - $0.renewedAt }
        standing.feedAge = .now - replica.lookedAt
        (standing.transactions, standing.lockWait) = replica.log.waited
        if let absence = replica.log.absence { (standing.absence, standing.hasEnded) = (absence.words, absence.isEnd) }
        return standing
    }

    func noteMove() { state.withLock { $0.facts.hasMovedHere = true } }

    func start() { queue.async { self.run() } }

    /// Ends the lease and the thread. Call it when nothing is sent any more.
    func stop() async {
        state.withLock { $0.isStopping = true }
        await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
    }

    private var isStopping: Bool { state.withLock(\.isStopping) }

    private func run() {
        var said: String?
        while !isStopping {
            do {
                try serve { said = nil }
            } catch is Displaced {
                return end()
            } catch {
                let detail = "\(error)"
                if said != detail {
                    replica.logger.warning("the fleet's database is away", metadata: ["reason": "\(detail)"])
                    said = detail
                }
                let isEnd = (error as? Ended)?.isForGood ?? false
                if replica.log.absence != .fenced { replica.log.offline(isEnd ? .ended(detail) : .away(detail)) }
            }
            if !isStopping { Self.sleep(Self.pause) }
        }
    }

    /// The reason why this node takes no part for now.
    struct Ended: Error, CustomStringConvertible {
        let description: String
        /// True if only a person can change that.
        var isForGood = false
    }

    /// Another process has registered as this node.
    private struct Displaced: Error {}

    /// Takes no part any more: two processes with one id would fence each other for ever.
    private func end() {
        let reason = "another process has the id of this node, so that one state_dir is a copy of the other"
        let next = "stop this node, run rockpool fleet rejoin, and start it"
        replica.logger.error("this node takes no part in its fleet any more", metadata: ["reason": "\(reason)", "next": "\(next)"])
        replica.log.offline(.ended("\(reason): \(next)"))
    }

    private func serve(onJoin: () -> Void) throws {
        let server = SharedServer(node: name, url: try url())
        let (connection, standing, place) = try server.connect { self.clock().milliseconds }
        guard standing.timeline >= replica.timeline else {
            throw Ended(
                description: "this server has timeline \(standing.timeline), and \(replica.timeline) was seen: it is no longer the primary")
        }
        guard SharedServer.encodings.contains(standing.encoding) else {
            throw Ended(description: "its encoding is \(standing.encoding): make the database with ENCODING 'UTF8'", isForGood: true)
        }
        try checkDurability(of: standing)
        try makeTables(on: connection)
        try markTimeline(standing.timeline, on: connection)
        try checkTerms(on: connection)
        var lease = try register(on: connection)
        try connection.run("LISTEN rockpool", within: .seconds(5))
        replica.saw(timeline: standing.timeline)
        replica.log.online(try server.connect(to: place), lease: lease, standing: standing)
        state.withLock { state in
            (state.facts.node, state.facts.name) = (replica.node, name)
            state.facts.timeline = standing.timeline
        }
        replica.logger.notice(
            "joined the fleet", metadata: ["node": "\(name)", "epoch": "\(lease.epoch)", "survives_host": "\(standing.isSynchronous)"])
        onJoin()
        notify(.joined)
        try keep(&lease, on: connection)
    }

    /// Compares what a commit survives with what is asked for. It may change while this node is connected.
    private func checkDurability(of standing: SharedServer.Standing) throws {
        if replica.settings.requiresSynchronous, !standing.isSynchronous {
            let what = standing.isVolatile ? "the server runs with fsync = off" : "a commit does not wait for a standby"
            throw Ended(description: "\(what) (outbox.require_synchronous)")
        }
        let before = state.withLock { state in
            defer { (state.facts.survivesHost, state.facts.isVolatile) = (standing.isSynchronous, standing.isVolatile) }
            return state.facts
        }
        if standing.isVolatile, !before.isVolatile {
            replica.logger.warning(
                "the fleet's database runs with fsync = off: an accepted write may not survive a power failure of its host")
        }
        if !before.node.isEmpty, before.survivesHost != standing.isSynchronous {
            let now = standing.isSynchronous ? "a commit waits for a standby" : "a commit does not wait for a standby any more"
            replica.logger.warning("what an accepted write survives has changed", metadata: ["now": "\(now)"])
        }
    }

    /// Goes on with the lease that this process had, unless another node has fenced it; else takes a new epoch.
    /// - Throws: `PostgreSQLError`, `Displaced`.
    private func register(on connection: PostgreSQLConnection) throws -> NodeLease {
        let now = ContinuousClock.now
        if let lease = replica.log.lease, try renew(lease, on: connection).isHeld {
            return NodeLease(epoch: lease.epoch, renewedAt: now)
        }
        if let own = state.withLock(\.epoch) {
            let live = "SELECT epoch::text FROM rockpool.node WHERE id = $1 AND NOT fenced"
            let epoch = try connection.run(live, [.text(replica.node)], within: .seconds(5)).first?.first?.number
            guard epoch ?? 0 <= own else { throw Displaced() }
            // If the answer to the registration is lost, it may have happened.
            state.withLock { $0.epoch = own + 1 }
        }
        let rows = try connection.run(
            """
            INSERT INTO rockpool.node (id, name, epoch, expires, version, position)
                VALUES ($1, $2, 1, clock_timestamp() + interval '15 s', $3, $4)
            ON CONFLICT (id) DO UPDATE SET epoch = node.epoch + 1, fenced = false, name = excluded.name, expires = excluded.expires,
                version = excluded.version, position = excluded.position
            RETURNING epoch::text
            """, [.text(replica.node), .text(name), .number(Int64(SharedSchema.version)), .number(replica.position)], within: .seconds(5))
        guard let epoch = rows.first?.first?.number else { throw PostgreSQLError.refused(state: "", "no epoch") }
        state.withLock { $0.epoch = epoch }
        return NodeLease(epoch: epoch, renewedAt: now)
    }

    private func renew(
        _ lease: NodeLease, on connection: PostgreSQLConnection
    ) throws(PostgreSQLError) -> (isHeld: Bool, hasExpired: Bool) {
        let results = try connection.run(
            """
            \(SharedSchema.begin);
            WITH own AS (
                UPDATE rockpool.node
                    SET expires = clock_timestamp() + interval '15 s', position = \(replica.position), held = \(replica.held)
                    WHERE id = '\(replica.node)' AND epoch = \(lease.epoch) AND NOT fenced RETURNING 1)
            SELECT (SELECT count(*) FROM own)::text,
                (SELECT count(*) FROM rockpool.node WHERE id <> '\(replica.node)' AND NOT fenced AND expires < clock_timestamp())::text,
                (SELECT count(*) FROM rockpool.node WHERE id < '\(replica.node)' AND NOT fenced AND expires > clock_timestamp())::text,
                (SELECT count(*) FROM rockpool.node WHERE NOT fenced AND expires > clock_timestamp())::text;
            COMMIT
            """, within: .seconds(5))
        guard connection.lastWarnings.isEmpty else { throw .warned(connection.lastWarnings.joined(separator: "; ")) }
        let numbers = (results.dropLast().last?.first ?? []).map { $0.number ?? 0 }
        guard numbers.count == 4 else { throw .refused(state: "", "no answer to a renewal") }
        state.withLock { ($0.facts.isFirst, $0.facts.nodes) = (numbers[2] == 0, Int(numbers[3])) }
        return (numbers[0] == 1, numbers[1] > 0)
    }

    /// Renews the lease and reads the feed until something fails.
    private func keep(_ lease: inout NodeLease, on connection: PostgreSQLConnection) throws {
        var (renewsAt, prunesAt) = (ContinuousClock.now, ContinuousClock.now)
        var declared: AgreedSettings?
        while !isStopping {
            if let absence = replica.log.absence { throw Ended(description: absence.words, isForGood: absence.isEnd) }
            let now = ContinuousClock.now
            if now >= renewsAt {
                let (isHeld, hasExpired) = try renew(lease, on: connection)
                guard isHeld else {
                    replica.log.offline(.fenced)
                    state.withLock { $0.facts.fenced += 1 }
                    throw Ended(description: SharedLog.Absence.fenced.words)
                }
                lease.renewedAt = now
                replica.log.renewed(lease)
                try checkDurability(of: SharedServer.standing(of: connection) { self.clock().milliseconds })
                try compareSettings(on: connection, declared: &declared)
                renewsAt = now + NodeLease.interval
                if hasExpired { notify(.expired) }
                if replica.held > 0 { notify(.held) }
            }
            if now >= prunesAt, state.withLock(\.facts.isFirst) {
                // Between two portions, the others have their turn, and this thread renews the lease.
                prunesAt = try prune(on: connection) ? now : now + Self.pruneInterval
            }
            let last = try connection.run("SELECT coalesce(max(n), 0) FROM rockpool.item", within: .seconds(5)).first?.first?.first?.number
            let behind = max(0, (last ?? 0) - replica.position)
            state.withLock { $0.facts.behind = behind }
            if behind > 0 { notify(.changed) } else { replica.looked(at: now) }
            _ = try connection.notified(within: Self.pollInterval)
        }
        try connection.run(
            "UPDATE rockpool.node SET fenced = true, expires = clock_timestamp() WHERE id = $1 AND epoch = $2",
            [.text(replica.node), .number(lease.epoch)], within: .seconds(2))
    }

    private static func sleep(_ span: Duration) {
        let (seconds, attoseconds) = span.components
        var time = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
        unsafe nanosleep(&time, nil)
    }
}
