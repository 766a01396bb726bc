// This node's database as a replica of the fleet's (docs/fleet.md#transactions).
import FoundationEssentials
import GRDB
import Logging
import RockpoolCore
import Synchronization

/// Runs each group of the writer as one transaction of the fleet: on the newest rows, in the order of PostgreSQL's commits.
final class FleetReplica: FleetMember {
    /// Those below `end` but for some that stay here.
    private struct HandedOver {
        var end = HeldOperations.first
        var except: Set<Int64> = []

        func contains(_ sequence: Int64) -> Bool { sequence < end && !except.contains(sequence) }
    }

    private struct State {
        /// The last change in this database.
        var position = SharedLog.Position()
        /// True if the transaction that is under way only reads.
        var isReading = false
        /// The position of the transaction that is under way, and what it has brought.
        var next = SharedLog.Position()
        var brought = ForeignChanges()
        var elsewhere: Set<Int64> = []
        /// The operations that other nodes have in flight.
        var elsewhereNow: Set<Int64> = []
        var held = 0
        /// The held operations after the transaction that is under way, and the first number that was given since there were some.
        var heldNext = 0
        var linkedFrom: Int64?
        /// The numbers of the held range that name no operation any more: at present, and after the transaction that is under way.
        var handedOver = HandedOver()
        var handedOverNext = HandedOver()
        /// The operations of the hand-over that is under way, and how many are handed over at once: fewer after a refusal.
        var portion: [Int64] = []
        /// False once the whole outbox of this node was refused.
        var bringsAll = true
        var most = HeldOperations.portion.writes
        /// The last number of that range that was given.
        var lastHeld: Int64 = 0
        /// The count of deliveries before the jobs of the transaction that is under way.
        var delivered: Int64 = 0
        /// The epoch under which each operation was leased here.
        var leased: [Int64: Int64] = [:]
        var tables: [ReplicatedTable] = []
        var sharedNumbers: [(table: String, last: Int64)] = []
        var isAlone = false
        var onChange: (@Sendable (ForeignChanges) -> Void)?
        /// The highest timeline of a server that this node has used.
        var timeline: Int64 = 0
        /// The same at the begin of the transaction that is under way.
        var timelineNext: Int64 = 0
        var lookedAt = ContinuousClock.now
        /// The same of the transaction that is under way.
        var lookedNext = ContinuousClock.now
    }

    let settings: OutboxSettings
    /// The id of this node.
    let node: String
    let log: SharedLog
    let logger: Logger
    private let clock: @Sendable () -> Timestamp
    private let blobs: BlobExchange
    private let triggers = OwnTriggers()
    private let localIDs: LocalIDTable
    private let state = Mutex(State())
    private let member = Mutex<FleetMembership?>(nil)

    init(
        settings: OutboxSettings, node: String, directory: String, footprint: Footprint, localIDs: LocalIDTable,
        clock: @escaping @Sendable () -> Timestamp, logger: Logger
    ) {
        (self.settings, self.node, self.localIDs, self.clock, self.logger) = (settings, node, localIDs, clock, logger)
        log = SharedLog(node: node, requiresSynchronous: settings.requiresSynchronous)
        blobs = BlobExchange(directory: directory, footprint: footprint, log: log)
    }

    // MARK: - Set-up

    /// The thread that keeps this node in its fleet; nil before the start.
    var membership: FleetMembership? { member.withLock(\.self) }

    func join(_ membership: FleetMembership) {
        member.withLock { $0 = membership }
        membership.start()
    }

    func leave() async { await membership?.stop() }

    func begin(on db: Database) throws {
        try triggers.begin(on: db)
        try db.execute(
            sql: Self.changes + """
                CREATE TEMP TRIGGER fleet_landed AFTER UPDATE OF state ON main.op WHEN old.state = 'inflight' AND new.state <> 'inflight'
                    BEGIN DELETE FROM fleet_claim WHERE seq = new.seq; END;
                CREATE TEMP TRIGGER fleet_blob_came AFTER INSERT ON main.op WHEN new.blob_sha IS NOT NULL BEGIN
                    INSERT INTO fleet_change (tbl, part, k1, k2, k3) SELECT 'blob', 0, new.blob_sha, '', ''; END;
                CREATE TEMP TRIGGER fleet_blob_moved AFTER UPDATE OF blob_sha, seq ON main.op WHEN new.blob_sha IS NOT NULL BEGIN
                    INSERT INTO fleet_change (tbl, part, k1, k2, k3) SELECT 'blob', 0, new.blob_sha, '', ''; END;
                CREATE TEMP TRIGGER fleet_blob_went AFTER DELETE ON main.blob BEGIN
                    INSERT INTO fleet_change (tbl, part, k1, k2, k3) SELECT 'blob', 0, old.sha, '', ''; END;
                """)
        let tables = try ReplicatedTable.all(in: db)
        for table in tables { try db.execute(sql: table.capture) }
        let row = try Row.fetchOne(db, sql: "SELECT position, timeline, word FROM fleet_state")
        let elsewhere = try elsewhere(in: db)
        let held = try HeldOperations.count(in: db)
        state.withLock { state in
            (state.tables, state.elsewhere, state.elsewhereNow, state.held) = (tables, elsewhere, elsewhere, held)
            if let row { (state.position, state.timeline) = (.init(number: row["position"], word: row["word"]), row["timeline"]) }
        }
    }

    /// Makes the tables of a replica.
    /// - Returns: the id of this node, made at the first start.
    static func prepare(in db: Database) throws -> String {
        try db.execute(
            sql: """
                CREATE TABLE IF NOT EXISTS fleet_state (
                    id INTEGER PRIMARY KEY CHECK (id = 1), node TEXT NOT NULL, position INTEGER NOT NULL, timeline INTEGER NOT NULL,
                    word INTEGER
                ) STRICT;
                CREATE TABLE IF NOT EXISTS fleet_kept (
                    seq INTEGER PRIMARY KEY REFERENCES op (seq) ON DELETE CASCADE, detail TEXT NOT NULL
                ) STRICT;
                CREATE TABLE IF NOT EXISTS fleet_claim (
                    seq INTEGER PRIMARY KEY REFERENCES op (seq) ON DELETE CASCADE, node TEXT NOT NULL, epoch INTEGER NOT NULL
                ) STRICT;
                CREATE TABLE IF NOT EXISTS fleet_stale (
                    kind TEXT NOT NULL, place TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (kind, place)
                ) STRICT;
                CREATE INDEX IF NOT EXISTS fleet_stale_at ON fleet_stale (at);
                """)
        // It came later.
        if try !db.columns(in: "fleet_state").contains(where: { $0.name == "word" }) {
            try db.execute(sql: "ALTER TABLE fleet_state ADD COLUMN word INTEGER")
        }
        if let node = try String.fetchOne(db, sql: "SELECT node FROM fleet_state") { return node }
        let node = newNode()
        try db.execute(sql: "INSERT INTO fleet_state VALUES (1, ?, 0, 0, NULL)", arguments: [node])
        return node
    }

    /// An id that no other node has.
    static func newNode() -> String {
        var random = SystemRandomNumberGenerator()
        return Digest.hex((0..<16).map { _ in UInt8.random(in: .min ... .max, using: &random) })
    }

    /// Makes an outbox of its own of what was a replica.
    /// - Returns: true if it was one.
    static func leave(_ pool: DatabasePool) throws -> Bool {
        guard try pool.read({ try $0.tableExists("fleet_state") }) else { return false }
        try pool.write { db in
            try db.execute(sql: changes)
            try db.execute(sql: "DROP TABLE IF EXISTS fleet_kept; CREATE TEMP TABLE fleet_kept (seq INTEGER PRIMARY KEY)")
            try HeldOperations.handOver(HeldOperations.next(in: db, upTo: nil), in: db)
            try noteLeaving(in: db)
            try db.execute(sql: "DROP TABLE temp.fleet_kept; DROP TABLE fleet_change; DROP TABLE fleet_claim; DROP TABLE fleet_state")
            try db.execute(sql: "DROP TABLE IF EXISTS fleet_stale")
        }
        return true
    }

    private static let changes = """
        CREATE TEMP TABLE fleet_change (n INTEGER PRIMARY KEY, tbl TEXT NOT NULL, part INTEGER NOT NULL, k1, k2, k3);
        """

    /// Returns the operations that this node does not have in flight itself under its present lease: those of an earlier lease wait for
    /// `takeOver`.
    private func elsewhere(in db: Database) throws -> Set<Int64> {
        let statement = try db.cachedStatement(sql: "SELECT seq FROM fleet_claim WHERE node <> ? OR epoch <> ?")
        return try Set(Int64.fetchAll(statement, arguments: [node, log.lease?.epoch ?? 0]))
    }

    // MARK: - Facts

    var position: Int64 { state.withLock(\.position.number) }
    var timeline: Int64 { state.withLock(\.timeline) }
    var held: Int { state.withLock(\.held) }
    var isAlone: Bool { state.withLock(\.isAlone) }
    var lookedAt: ContinuousClock.Instant { state.withLock(\.lookedAt) }

    func looked(at moment: ContinuousClock.Instant) { state.withLock { $0.lookedAt = max($0.lookedAt, moment) } }
    func isHandedOver(_ sequence: Int64) -> Bool { sequence >= HeldOperations.first && state.withLock { $0.handedOver.contains(sequence) } }
    func isElsewhere(_ sequence: Int64) -> Bool { state.withLock { $0.elsewhereNow.contains(sequence) } }
    func onChange(_ body: @escaping @Sendable (ForeignChanges) -> Void) { state.withLock { $0.onChange = body } }

    // MARK: - Transactions

    func begin(in db: Database, isReading: Bool, bodies: [Data]) throws -> Bool {
        let (position, isReading) = state.withLock { state in
            (state.brought, state.next, state.timelineNext) = (ForeignChanges(), state.position, state.timeline)
            state.handedOverNext = state.handedOver
            state.isReading = isReading && state.position.number > 0
            return (state.position, state.isReading)
        }
        let now = ContinuousClock.now
        var feed = FeedApplication(state.withLock(\.tables), blobs: blobs, triggers: triggers, clockOffset: log.clockOffset, now: clock())
        var left: Int64?
        func take(_ items: [SharedItem]) throws {
            // The fleet has an outbox already: what this node brings comes after it.
            if position.number == 0, feed.last == nil, !items.isEmpty {
                guard left == nil else { throw wentOn() }
                try withdraw(in: db)
            }
            try feed.take(items, in: db)
        }
        do {
            if position.number == 0 { left = try positionLeft(in: db) }
            // Without the lock, for which the other nodes wait.
            let start = left.map { SharedLog.Position(number: $0) } ?? position
            if isReading || log.isNew { try log.read(after: start, take) }
            if !isReading {
                let (held, most) = state.withLock { ($0.held, $0.most) }
                try blobs.shareAhead(bodies + (held > 0 ? HeldOperations.bodies(upTo: most, in: db) : []))
            }
            if !isReading { try log.begin(after: feed.last ?? start, isJoining: position.number == 0, take) }
            if left != nil { try replace(in: db) }
        } catch let absence as SharedLog.Absence {
            throw self.absence(absence)
        }
        try feed.finish(in: db)
        if feed.last != nil { try db.cachedStatement(sql: Self.forgetting).execute() }
        let (changes, last, held) = (feed.changes, feed.last, try HeldOperations.count(in: db))
        state.withLock { state in
            let renumbered = state.brought.renumbered
            (state.brought, state.lookedNext, state.heldNext) = (changes, now, held)
            state.brought.renumbered = renumbered
            state.next = last ?? state.next
        }
        if isReading { return true }
        if position.number == 0, feed.last == nil, try !begin(with: state.withLock(\.bringsAll), in: db) { return false }
        return try handOver(in: db)
    }

    private static let forgetting = "DELETE FROM temp.fleet_change"

    /// Begins an outbox of the fleet with what this node has.
    /// - Parameter isWhole: false after that was refused: then only its open operations come, as those of a node that joins.
    /// - Returns: false if that takes a transaction of its own.
    private func begin(with isWhole: Bool, in db: Database) throws -> Bool {
        guard isWhole else {
            try withdraw(in: db)
            return true
        }
        try bringAll(in: db)
        state.withLock { $0.portion = [] }
        return try Bool.fetchOne(db, sql: "SELECT NOT EXISTS (SELECT 1 FROM op WHERE seq < ?)", arguments: [HeldOperations.first]) ?? true
    }

    private func withdraw(in db: Database) throws {
        let open = try DataStore.light(OperationState.isOpen, in: db)
        let start = try HeldOperations.withdraw(in: db)
        state.withLock { state in
            state.brought.renumbered += open
            state.handedOverNext = HandedOver(end: start)
        }
    }

    /// The first node of a fleet, or the last that comes back, brings the outbox that it has.
    private func bringAll(in db: Database) throws {
        do { try keep(.returned) } catch let absence as SharedLog.Absence { throw self.absence(absence) }
        try db.execute(sql: "DROP TABLE IF EXISTS fleet_left")
        for table in state.withLock(\.tables) { try db.execute(sql: table.captureAll) }
        try db.execute(sql: "INSERT INTO fleet_change (tbl, part, k1, k2, k3) SELECT 'blob', 0, sha, '', '' FROM blob")
    }

    /// Gives the next of the held operations their places in the fleet, in a transaction of their own: one that is refused concerns no job.
    /// - Returns: true when there were none.
    private func handOver(in db: Database) throws -> Bool {
        let most = state.withLock(\.most)
        let held = try HeldOperations.next(in: db, upTo: (most, HeldOperations.portion.bytes))
        let before = try held.last.map { try DataStore.light("seq BETWEEN \(HeldOperations.first) AND \($0)", in: db) } ?? []
        let moved = Set(held)
        let numbers = try HeldOperations.handOver(held, in: db, linkedFrom: state.withLock(\.linkedFrom))
        let left = try HeldOperations.count(in: db)
        let delivered = try DataStore.delivered(in: db)
        // One that was refused before, and is offered again, may stand before others that were handed over meanwhile.
        let end = max(state.withLock(\.handedOver.end), held.last.map { $0 + 1 } ?? HeldOperations.first)
        let handedOver = try held.isEmpty ? nil : HandedOver(end: end, except: HeldOperations.numbers(below: end, in: db))
        state.withLock { state in
            state.brought.renumbered += before.filter { moved.contains($0.sequence) }
            if let handedOver { state.handedOverNext = handedOver }
            state.brought.operations.formUnion(numbers)
            (state.heldNext, state.delivered) = (left, delivered)
            state.linkedFrom = left == 0 ? nil : state.linkedFrom ?? numbers.first
            state.portion = held
        }
        return held.isEmpty
    }

    func bringLess(after refusal: PartnerRefusal, in db: Database) throws {
        let (portion, detail) = (state.withLock(\.portion), "\(refusal.error)")
        guard portion.count <= 1 else { return state.withLock { $0.most = portion.count / 2 } }
        guard let sequence = portion.first else {
            logger.error("the fleet's database does not take the whole outbox", metadata: ["reason": "\(detail)"])
            return state.withLock { $0.bringsAll = false }
        }
        logger.error("a write is kept here: the fleet's database does not take it", metadata: ["reason": "\(detail)"])
        try db.inTransaction(.immediate) {
            try beginAlone(in: db)
            try HeldOperations.keepBack(sequence, detail: detail, now: clock(), in: db)
            try endAlone(in: db)
            return .commit
        }
        state.withLock { $0.most = HeldOperations.portion.writes }
        var changes = ForeignChanges()
        changes.operations = [sequence]
        tell(changes, in: db)
    }

    func isHalfCommitted(by failure: any Error) -> any Error {
        if state.withLock(\.isReading) { return failure }
        return DataStoreError.away("it has kept this, and this node has failed: \(failure); it is not known what becomes of it")
    }

    func prepare(in db: Database) throws {
        let news: SharedLog.Position?
        do { news = try state.withLock(\.isReading) ? nil : ship(in: db) } catch let absence as SharedLog.Absence {
            throw self.absence(absence)
        } catch let error as PostgreSQLError {
            throw PartnerRefusal(error: DataStoreError.refused("\(error)"))
        }
        let (elsewhere, held) = (try elsewhere(in: db), try HeldOperations.count(in: db))
        let (next, timeline) = state.withLock { state in
            (state.elsewhere, state.heldNext) = (elsewhere, held)
            return (state.next, state.timelineNext)
        }
        if next != state.withLock(\.position) {
            // Together: a position means nothing without the timeline on which it was reached.
            try db.cachedStatement(sql: "UPDATE fleet_state SET position = ?, timeline = ?, word = ?")
                .execute(arguments: [next.number, timeline, next.word])
        }
        if !state.withLock(\.isReading) {
            FailPoint.beforeSharedCommit.reached()
            do { try log.commit(news) } catch let absence as SharedLog.Absence {
                throw unknown(absence.words)
            } catch let error as PostgreSQLError {
                throw PartnerRefusal(error: DataStoreError.refused("\(error)"))
            }
            FailPoint.betweenCommits.reached()
        }
        // This server is not the primary any more.
        guard self.timeline == timeline else { throw unknown("another server was promoted") }
    }

    private func unknown(_ detail: String) -> PartnerAbsence {
        PartnerAbsence(error: DataStoreError.away("\(detail); it is not known whether it has kept this"), isUnknown: true)
    }

    /// Adds what the jobs have changed to the shared transaction.
    /// - Returns: what the commit is known by; nil if there is nothing.
    private func ship(in db: Database) throws -> SharedLog.Position? {
        let (tables, delivered) = state.withLock { ($0.tables, $0.delivered) }
        var (last, ownLines): (Int64, [Int64]) = (0, [])
        try Shipment.parts(in: db, tables: tables, clockOffset: log.clockOffset, delivered: delivered) { part in
            for hash in part.bodies { try blobs.share(hash) }
            for hash in part.goneBodies { try blobs.unshare(hash) }
            let number = try log.ship(part.distinct, replaced: part.replaced, released: part.released, claimed: part.claimed)
            last = max(last, number ?? 0)
            ownLines += part.ownLines
        }
        try HeldOperations.setApart(ownLines, in: db)
        try db.cachedStatement(sql: Self.forgetting).execute()
        guard last > 0 else { return nil }
        let news = SharedLog.Position(number: last, word: .random(in: .min ... .max))
        state.withLock { $0.next = news }
        return news
    }

    func abandon() { if !state.withLock(\.isReading) { log.abandon() } }

    func ended(in db: Database, isCommitted: Bool) {
        guard isCommitted else { return }
        let changes = state.withLock { state in
            (state.elsewhereNow, state.held, state.handedOver) = (state.elsewhere, state.heldNext, state.handedOverNext)
            return state.brought
        }
        forgetLanded(in: db)
        // Only when it is published: a read that takes this node for up to date must see what the transaction has brought.
        defer { state.withLock { ($0.position, $0.lookedAt) = ($0.next, max($0.lookedAt, $0.lookedNext)) } }
        guard !changes.isEmpty else { return }
        try? localIDs.load(changes.localIDs, in: db)
        self.tell(changes, in: db)
    }

    /// Publishes changes before the callers of the transaction are answered: they see them then.
    private func tell(_ changes: ForeignChanges, in db: Database) {
        guard let tell = state.withLock(\.onChange) else { return }
        var changes = changes
        changes.read(in: db)
        tell(changes)
    }

    /// Adds operations that the transaction under way changes for other nodes.
    func bring(_ sequences: [Int64]) { state.withLock { $0.brought.operations.formUnion(sequences) } }

    private func absence(_ absence: SharedLog.Absence) -> PartnerAbsence {
        // What a node keeps that has no way back to its fleet would never be sent.
        PartnerAbsence(error: DataStoreError.away(absence.words), permitsEither: settings.whenUnreachable == .local && !absence.isEnd)
    }

    // MARK: - Alone

    func beginAlone(in db: Database) throws {
        let numbers = try HeldOperations.beginNumbering(in: db, after: state.withLock(\.lastHeld))
        state.withLock { ($0.sharedNumbers, $0.isAlone) = (numbers, true) }
    }

    func endAlone(in db: Database) throws {
        try HeldOperations.endNumbering(state.withLock(\.sharedNumbers), in: db)
        try db.execute(sql: "DELETE FROM fleet_change")
        let held = try HeldOperations.count(in: db)
        let last = try Int64.fetchOne(db.cachedStatement(sql: "SELECT max(seq) FROM op")) ?? 0
        state.withLock { ($0.isAlone, $0.held, $0.lastHeld) = (false, held, max($0.lastHeld, last)) }
    }

    // MARK: - Claims

    func claim(_ sequence: Int64, in db: Database) throws -> Bool {
        guard let lease = log.lease, lease.end > .now, sequence < HeldOperations.first else { return false }
        let isTaken = try Bool.fetchOne(
            db.cachedStatement(
                sql: """
                    SELECT EXISTS (SELECT 1 FROM fleet_claim JOIN op AS other ON other.seq = fleet_claim.seq, op AS own
                        WHERE own.seq = ?1 AND fleet_claim.node <> ?2 AND other.upstream = own.upstream AND other.lane = own.lane)
                    """), arguments: [sequence, node])
        guard isTaken == false else { return false }
        try db.cachedStatement(
            sql: "INSERT INTO fleet_claim VALUES (?, ?, ?) ON CONFLICT (seq) DO UPDATE SET node = excluded.node, epoch = excluded.epoch"
        ).execute(arguments: [sequence, node, lease.epoch])
        state.withLock { $0.leased[sequence] = lease.epoch }
        return true
    }

    func owns(_ sequence: Int64, in db: Database) throws -> Bool {
        let epoch = state.withLock { $0.leased[sequence] ?? 0 }
        return try Bool.fetchOne(
            db.cachedStatement(sql: "SELECT NOT EXISTS (SELECT 1 FROM fleet_claim WHERE seq = ? AND NOT (node = ? AND epoch = ?))"),
            arguments: [sequence, node, epoch]) ?? false
    }

    /// The end of the lease under which the operations were claimed here; nil when there is another lease by now, or none.
    func leaseEnd(of sequences: [Int64]) -> ContinuousClock.Instant? {
        guard let lease = log.lease else { return nil }
        let isSame = state.withLock { state in sequences.allSatisfy { state.leased[$0] == lease.epoch } }
        return isSame ? lease.end : nil
    }

    /// Forgets the epochs of operations that are no longer in flight here.
    private func forgetLanded(in db: Database) {
        guard state.withLock({ $0.leased.count > 1000 }),
            let own = try? Set(Int64.fetchAll(db, sql: "SELECT seq FROM fleet_claim WHERE node = ?", arguments: [node]))
        else { return }
        state.withLock { state in state.leased = state.leased.filter { own.contains($0.key) } }
    }

    func saw(timeline: Int64) { state.withLock { $0.timeline = max($0.timeline, timeline) } }

    func keepTimeline(in db: Database) throws { try db.execute(sql: "UPDATE fleet_state SET timeline = ?", arguments: [timeline]) }
}
