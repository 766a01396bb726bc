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

// MARK: - Terms

// What a node must have in common with its fleet, and the removal of what every node has seen (docs/fleet.md#schema).
extension FleetMembership {
    /// - Throws: `Ended` when this node has another schema or another secret, has missed changes that are no longer there, or has seen
    ///   changes that never will be.
    func checkTerms(on connection: PostgreSQLConnection) throws {
        try connection.run("INSERT INTO rockpool.meta VALUES ('key', $1) ON CONFLICT DO NOTHING", [.text(keyMark)], within: .seconds(5))
        let rows = try connection.run("SELECT name, value FROM rockpool.meta", within: .seconds(5)).first ?? []
        let terms = Dictionary(rows.map { ($0[0].text ?? "", $0[1].text ?? "") }) { first, _ in first }
        guard terms["version"].flatMap({ Int($0) }) == SharedSchema.version else {
            throw Ended(description: "its schema is not version \(SharedSchema.version): upgrade this node", isForGood: true)
        }
        guard terms["key"] == keyMark else {
            throw Ended(
                description: "this node has another secret than its fleet: copy install-key from a node's state_dir before the start",
                isForGood: true)
        }
        guard terms["moved"] != replica.node else {
            noteMove()
            throw Ended(
                description: "the outbox was moved to this node's data.sqlite: run rockpool outbox migrate --to sqlite again",
                isForGood: true)
        }
        guard replica.position == 0 || replica.position >= terms["pruned"].flatMap({ Int64($0) }) ?? 0 else {
            let reason = "this node was away for more than 30 days, or its fleet's outbox was moved"
            throw Ended(description: "\(reason): stop it, run rockpool fleet rejoin, and start it", isForGood: true)
        }
        try checkMarks(of: terms)
    }

    /// - Throws: `Ended` when this node has seen more than a server had that was promoted since.
    private func checkMarks(of terms: [String: String]) throws(Ended) {
        let prefix = SharedSchema.timelinePrefix
        let newer = terms.filter { name, _ in name.hasPrefix(prefix) && Int64(name.dropFirst(prefix.count)) ?? 0 > replica.timeline }
        let mark = newer.values.compactMap { Int64($0) }.min() ?? .max
        guard replica.position <= mark else { throw Ended(description: SharedLog.lacks(mark, of: replica.position), isForGood: true) }
    }

    /// Marks a timeline that is new to this node, if no other node has.
    func markTimeline(_ timeline: Int64, on connection: PostgreSQLConnection) throws(PostgreSQLError) {
        guard timeline > replica.timeline else { return }
        let marking = SharedSchema.mark(timeline)
        try connection.run("\(SharedSchema.begin); \(SharedSchema.lock); \(marking); COMMIT", within: .seconds(10))
    }

    /// Makes the tables if they are not there. An `ALTER TABLE` waits for every reader of the table even where it has nothing to do, and the
    /// writers of the fleet wait for it.
    func makeTables(on connection: PostgreSQLConnection) throws(PostgreSQLError) {
        guard try connection.run(SharedSchema.isMade, within: .seconds(5)).first?.first?.first?.text != "t" else { return }
        try connection.run("\(SharedSchema.begin); \(SharedSchema.lock); \(SharedSchema.creation); COMMIT", within: .seconds(10))
    }

    /// Removes some of what every node has read of deleted rows, of lanes with nothing in flight, of the history of commits, and of bodies that no
    /// row names; a node that was away for 30 days does not count. A lock that does not come free soon leaves it for the next time.
    /// - Returns: true if there is more.
    func prune(on connection: PostgreSQLConnection) throws(PostgreSQLError) -> Bool {
        do throws(PostgreSQLError) {
            let results = try connection.run(Self.pruning, within: .seconds(30))
            return results.contains { ($0.first?.first?.number ?? 0) >= Self.portion }
        } catch .refused(state: "55P03", _) {
            try connection.run("ROLLBACK", within: .seconds(5))
            return false
        }
    }

    /// So many rows are removed at once, while the other nodes wait.
    private static let portion: Int64 = 1000

    /// The key of a body's row, as `RowBytes` has it: the name, the type of bytes, their length, and the bytes.
    private static let bodyKey = "'\\x0373686104'::bytea || int4send(length(sha)) || sha"

    /// Each DELETE says how many rows it has removed.
    private static let pruning = """
        \(SharedSchema.begin);
        \(SharedSchema.lock);
        DELETE FROM rockpool.node WHERE expires < clock_timestamp() - interval '30 days'
            AND NOT EXISTS (SELECT 1 FROM rockpool.claim WHERE claim.node = node.id);
        DELETE FROM rockpool.meta WHERE name LIKE '\(SharedSchema.settingsPrefix)%'
            AND NOT EXISTS (SELECT 1 FROM rockpool.node WHERE meta.name = '\(SharedSchema.settingsPrefix)' || node.id);
        WITH gone AS (
            DELETE FROM rockpool.lane WHERE (upstream, lane) IN (
                SELECT upstream, lane FROM rockpool.lane WHERE NOT EXISTS (
                    SELECT 1 FROM rockpool.claim WHERE claim.upstream = lane.upstream AND claim.lane = lane.lane) LIMIT \(portion))
                RETURNING 1
        ) SELECT count(*) FROM gone;
        WITH gone AS (
            DELETE FROM rockpool.word WHERE n IN (
                SELECT n FROM (SELECT n, at FROM rockpool.word ORDER BY n LIMIT \(portion)) AS oldest
                    WHERE at < clock_timestamp() - interval '1 hour') RETURNING 1
        ) SELECT count(*) FROM gone;
        WITH gone AS (
            DELETE FROM rockpool.blob WHERE sha IN (
                SELECT sha FROM rockpool.blob WHERE NOT EXISTS (
                    SELECT 1 FROM rockpool.item WHERE tbl = 'blob' AND part = 0 AND data IS NOT NULL AND key = \(bodyKey)) LIMIT 100)
                RETURNING 1
        ) SELECT count(*) FROM gone;
        WITH gone AS (
            DELETE FROM rockpool.item WHERE n IN (
                SELECT n FROM rockpool.item WHERE data IS NULL AND n < (SELECT min(position) FROM rockpool.node) ORDER BY n LIMIT \(portion))
                RETURNING n
        ), noted AS (
            UPDATE rockpool.meta SET value = greatest(value::bigint, (SELECT coalesce(max(n), 0) FROM gone))::text WHERE name = 'pruned'
        ) SELECT count(*) FROM gone;
        COMMIT
        """

    // MARK: - Settings
    // The comparison of a node's settings with those of the others (docs/fleet.md#settings).

    /// Takes over the settings of this node, which the next renewal of its lease tells the others.
    func take(_ settings: AgreedSettings) { state.withLock { $0.settings = settings } }

    /// Tells the others the settings of this node if they are not those that were told, and looks at theirs.
    func compareSettings(on connection: PostgreSQLConnection, declared: inout AgreedSettings?) throws(PostgreSQLError) {
        guard let own = state.withLock(\.settings) else { return }
        if own != declared {
            try connection.run(
                "INSERT INTO rockpool.meta VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                [.text(SharedSchema.settingsPrefix + replica.node), .text(own.text)], within: .seconds(5))
            declared = own
        }
        let rows = try connection.run(
            """
            SELECT node.id, node.name, meta.value FROM rockpool.node JOIN rockpool.meta ON meta.name = '\(SharedSchema.settingsPrefix)' || node.id
                WHERE node.id <> $1 AND meta.value <> $2 AND NOT fenced AND expires > clock_timestamp() ORDER BY node.name, node.id
            """, [.text(replica.node), .text(own.text)], within: .seconds(5))
        note(
            rows.compactMap { row in
                guard row.count == 3, let id = row[0].text, let name = row[1].text,
                    let keys = row[2].text.flatMap(AgreedSettings.init(text:))?.differences(from: own), !keys.isEmpty
                else { return nil }
                return FleetDifference(node: id, name: name, keys: keys)
            })
    }

    /// Logs what is new.
    private func note(_ differences: [FleetDifference]) {
        let before = state.withLock { state in
            defer { state.facts.differences = differences }
            return state.facts.differences
        }
        for difference in differences where !before.contains(difference) {
            replica.logger.warning(
                "the settings of another node differ from those of this one",
                metadata: ["node": "\(difference.name)", "keys": "\(difference.words)"])
        }
        if differences.isEmpty, !before.isEmpty { replica.logger.notice("the settings of all nodes agree again") }
    }
}
