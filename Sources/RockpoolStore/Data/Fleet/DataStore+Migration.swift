// The way of an outbox into the database of a fleet and back, with the server stopped (docs/fleet.md#joining-and-leaving).
import GRDB
package import Logging
package import RockpoolCore

extension DataStore {
    /// Brings the outbox of a stopped server into the database of a fleet, as its first start with these settings would. What is there
    /// already stays. After a crash at any moment it may run again.
    /// - Returns: what this node and the database have then.
    /// - Throws: `.locked` while a server runs, `.away` with the reason, `.unavailable` if the counts differ.
    package static func bring(
        _ directory: String, into outbox: OutboxSettings, settings: StorageSettings, clock: @escaping @Sendable () -> Timestamp,
        logger: Logger
    ) async throws -> OutboxCensus {
        let wasReplica = try await isReplica(directory, settings: settings, clock: clock, logger: logger)
        do {
            return try await with(directory, outbox: outbox, settings: settings, clock: clock, logger: logger) { store in
                guard try await store.hasArrived() else {
                    throw DataStoreError.unavailable("the outbox was moved from there: first run rockpool outbox migrate --to sqlite again")
                }
                return try await store.comparedCensus()
            }
        } catch DataStoreError.away(let detail) where !wasReplica {
            // It was in no fleet, and goes on as before.
            try await with(directory, outbox: OutboxSettings(), settings: settings, clock: clock, logger: logger) { _ in }
            throw DataStoreError.away(detail)
        }
    }

    /// Takes the outbox of a fleet into the database of its last node, whose server is stopped, and empties the fleet's. After a crash at
    /// any moment it may run again.
    /// - Parameter outbox: how this node takes part in the fleet.
    /// - Returns: what this node has then.
    /// - Throws: as `bring`, and `.unavailable` while another node is there or has something that is not in the database.
    package static func takeBack(
        _ directory: String, from outbox: OutboxSettings, settings: StorageSettings, clock: @escaping @Sendable () -> Timestamp,
        logger: Logger
    ) async throws -> OutboxCensus {
        if try await isReplica(directory, settings: settings, clock: clock, logger: logger) {
            _ = try await with(directory, outbox: outbox, settings: settings, clock: clock, logger: logger) { store in
                guard try await store.hasArrived() else { return }
                _ = try await store.comparedCensus()
                try await store.emptyFleet()
            }
        }
        FailPoint.afterEmptying.reached()
        return try await with(directory, outbox: OutboxSettings(), settings: settings, clock: clock, logger: logger) { store in
            try await store.reading { try OutboxCensus(in: $0) }
        }
    }

    private static func isReplica(
        _ directory: String, settings: StorageSettings, clock: @escaping @Sendable () -> Timestamp, logger: Logger
    ) async throws -> Bool {
        try await with(directory, outbox: nil, settings: settings, clock: clock, logger: logger) { $0.replica != nil }
    }

    static func with<Value: Sendable>(
        _ directory: String, outbox: OutboxSettings?, settings: StorageSettings, clock: @escaping @Sendable () -> Timestamp,
        logger: Logger, _ body: (DataStore) async throws -> Value
    ) async throws -> Value {
        let store = try open(directory: directory, settings: settings, outbox: outbox, clock: clock, logger: logger)
        do {
            let value = try await body(store)
            await store.close()
            return value
        } catch {
            await store.close()
            throw error
        }
    }

    /// Waits until this node is in its fleet.
    /// - Returns: false if the fleet's outbox has moved here already.
    /// - Throws: `.away` after ten seconds.
    private func hasArrived() async throws -> Bool {
        let end = ContinuousClock.now + .seconds(10)
        while !maySend {
            if fleet?.hasMovedHere == true { return false }
            guard .now < end else { throw DataStoreError.away(fleet?.absence ?? "no answer") }
            try await Task.sleep(for: .milliseconds(50))
        }
        return true
    }

    /// Brings this node and the database to the same state, and counts in both.
    private func comparedCensus() async throws -> OutboxCensus {
        guard let replica = fleetReplica else { throw DataStoreError.unavailable("the outbox is in no fleet") }
        var counts: (own: OutboxCensus, shared: OutboxCensus)?
        // What is changed in the same transaction, such as by a take-over, reaches the database after the count.
        for _ in 0..<5 {
            try await queue.commit { _ in }
            let found = try await queue.commit { (own: try OutboxCensus(in: $0), shared: try OutboxCensus(at: replica.log)) }
            if found.own == found.shared { return found.own }
            counts = found
        }
        throw DataStoreError.unavailable("the counts differ: \(counts.map { "\($0.own) here, \($0.shared) in the database" } ?? "")")
    }

    /// Empties the shared database, of which this node has everything; no other node can begin with what it has of it.
    func emptyFleet() async throws {
        guard let replica = fleetReplica else { return }
        try await queue.commit { _ in
            try replica.empty()
            try replica.keep(.moved)
        }
    }
}

// MARK: - Beginning anew
// A node that its fleet refuses begins anew with the open writes that it has (docs/fleet.md#coming-back).

/// What a node offers to its fleet at its next start, under the same ids.
package struct RejoinOffer: Hashable, Sendable, Codable {
    /// Writes that this node alone has: they wait, as before.
    package var held: Int
    /// Open writes that the fleet had when this node saw it last. Those that it still has stay as they are there; the others come back.
    package var seen: Int
}

extension DataStore {
    /// Makes the replica of a stopped server forget what it has seen of its fleet, and take another id: its next start joins as a node with an
    /// outbox of its own, whatever refused it before. A write that others may have sent meanwhile is uncertain if it comes back.
    /// - Throws: `.locked` while a server runs; `.unavailable` if the outbox is no replica.
    package static func rejoin(
        _ directory: String, settings: StorageSettings, clock: @escaping @Sendable () -> Timestamp, logger: Logger
    ) async throws -> RejoinOffer {
        try await with(directory, outbox: nil, settings: settings, clock: clock, logger: logger) { store in
            guard store.isOfFleet else { throw DataStoreError.unavailable("the outbox in \(directory) is in no fleet") }
            let now = clock()
            return try await store.queue.commit(scope: .own) { db in try FleetReplica.beginAnew(in: db, now: now) }
        }
    }
}

extension FleetReplica {
    /// Takes a new id, and no position: the next transaction of the fleet brings all of its rows, and hands over what it lacks.
    static func beginAnew(in db: Database, now: Timestamp) throws -> RejoinOffer {
        func count(_ condition: String) throws -> Int {
            try Int.fetchOne(db, sql: "SELECT count(*) FROM op WHERE \(condition) AND \(OperationState.isOpen)") ?? 0
        }
        let offer = RejoinOffer(
            held: try count("seq >= \(HeldOperations.first)"), seen: try count("seq < \(HeldOperations.first)"))
        // The fleet knew these: another node may have sent them since this one saw it last.
        let waiting = try Int64.fetchAll(db, sql: "SELECT seq FROM op WHERE seq < \(HeldOperations.first) AND state = 'pending'")
        for sequence in waiting {
            try db.execute(
                sql: """
                    INSERT INTO attempt (seq, rev, n, started, ended, error, evidence)
                        SELECT seq, key_rev, (SELECT coalesce(max(n) + 1, 0) FROM attempt WHERE attempt.seq = op.seq), accepted_at,
                            max(accepted_at, ?2), 'crashed', 'maybe' FROM op WHERE seq = ?1
                    """, arguments: [sequence, now.milliseconds])
            try db.execute(
                sql: "UPDATE op SET first_sent_at = coalesce(first_sent_at, accepted_at), sent_tick = coalesce(sent_tick, 0) WHERE seq = ?",
                arguments: [sequence])
            try DataStore.transition(in: db, sequence: sequence, from: .pending, to: .uncertain, reason: .crashed, now: now)
        }
        try db.execute(sql: "DELETE FROM fleet_claim; DROP TABLE IF EXISTS fleet_left")
        try db.execute(
            sql: "UPDATE fleet_state SET node = ?, position = 0, timeline = 0, word = NULL", arguments: [newNode()])
        return offer
    }

    // MARK: - Coming back
    // A node that has left its fleet by a restart, and comes back (docs/fleet.md#joining-and-leaving).

    /// Notes in an outbox that leaves its fleet where that was.
    static func noteLeaving(in db: Database) throws {
        try db.execute(
            sql: """
                CREATE TABLE IF NOT EXISTS fleet_left (
                    id INTEGER PRIMARY KEY CHECK (id = 1), node TEXT NOT NULL, position INTEGER NOT NULL
                ) STRICT;
                INSERT INTO fleet_left SELECT id, node, position FROM fleet_state WHERE position > 0
                    ON CONFLICT (id) DO UPDATE SET node = excluded.node, position = excluded.position
                """)
    }

    /// The position at which this node has left the fleet that it comes back to now, with an outbox that is newer; nil if it joins.
    /// - Throws: `SharedLog.Absence` when others have used the fleet's outbox since: there are two now.
    func positionLeft(in db: Database) throws -> Int64? {
        guard try db.tableExists("fleet_left"), let left = try Row.fetchOne(db, sql: "SELECT node, position FROM fleet_left")
        else { return nil }
        let (former, position): (String, Int64) = (left[0], left[1])
        let rows = try log.ask(
            """
            SELECT (SELECT count(*) FROM rockpool.node WHERE id = $1), (SELECT coalesce(max(n), 0) FROM rockpool.item),
                (SELECT count(*) FROM rockpool.meta WHERE name = 'returned' AND value = $2)
            """, [.text(former), .text(node)])
        let facts = (rows.first ?? []).map { ($0 ?? []).reduce(Int64(0)) { $0 << 8 | Int64($1) } }
        // Unknown there, empty, or the fleet has this outbox already.
        guard facts.count == 3, facts[0] > 0, facts[1] > 0, facts[2] == 0 else { return nil }
        guard facts[1] == position else { throw wentOn() }
        return position
    }

    /// The fleet has gone on without this node, which has gone on as well.
    func wentOn() -> SharedLog.Absence {
        let absence = SharedLog.Absence.ended(
            "others have used its outbox since this node left it: stop it, run rockpool fleet rejoin, and start it")
        log.offline(absence)
        return absence
    }

    /// Puts this node's outbox in the place of the fleet's.
    func replace(in db: Database) throws {
        do { try empty() } catch DataStoreError.unavailable(let detail) {
            log.offline(.away(detail))
            throw SharedLog.Absence.away(detail)
        }
    }

    /// Empties the shared database, within its transaction. Nodes that had read it stay out afterwards.
    /// - Throws: `.unavailable` while another node is there, or has something that is not in the database.
    func empty() throws {
        let others = try log.run(
            """
            SELECT string_agg(name || CASE WHEN held > 0 THEN ' (holds ' || held || ' writes)' ELSE '' END, ', ') FROM rockpool.node
                WHERE id <> $1 AND (held > 0 OR NOT fenced AND expires > clock_timestamp())
            """, [.text(node)])
        if let names = others.first?.first?.text {
            throw DataStoreError.unavailable("other nodes share this outbox: \(names); let them hand over what they hold, and stop them")
        }
        for statement in SharedSchema.emptying { try log.run(statement) }
    }

    /// What the shared database keeps of a node: a crash may come before the node's own commit.
    enum Mark: String {
        /// It has taken everything.
        case moved
        /// It has brought everything.
        case returned
    }

    /// Keeps in the shared database, within its transaction, what this node has done.
    func keep(_ mark: Mark) throws {
        try log.run(
            "INSERT INTO rockpool.meta VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            [.text(mark.rawValue), .text(node)])
    }
}

/// The rows of an outbox by kind: the same in the database of a fleet and in a replica of it (docs/fleet.md#joining-and-leaving).
package struct OutboxCensus: Hashable, Sendable, Codable {
    /// Operations in every state, and those among them that have not ended.
    package var operations: Int64
    package var open: Int64
    /// Bodies of requests and responses.
    package var bodies: Int64
    /// Keys of clients, each of which names one operation.
    package var keys: Int64
    /// Attempts, conflicts and lines of the log.
    package var history: Int64

    /// Counts in a node's own database, without what only this node of a fleet has.
    init(in db: Database) throws {
        let shared = "seq < \(HeldOperations.first)"
        let sql = """
            SELECT (SELECT count(*) FROM op WHERE \(shared)), (SELECT count(*) FROM op WHERE \(shared) AND \(OperationState.isOpen)),
                (SELECT count(body) + count(resp_body) + count(DISTINCT blob_sha) FROM op WHERE \(shared)),
                (SELECT count(client_key) FROM op WHERE \(shared)),
                (SELECT count(*) FROM attempt WHERE \(shared)) + (SELECT count(*) FROM conflict WHERE \(shared))
                    + (SELECT count(*) FROM sync_log WHERE n < \(HeldOperations.first))
            """
        let row = try Row.fetchOne(db, sql: sql)
        self.init((0..<5).map { row?[$0] ?? 0 })
    }

    /// Counts in the database of the fleet, within its transaction.
    init(at log: SharedLog) throws {
        // A body that was taken away is a row with NULL: its type is the byte after its name.
        let row = try log.run(
            """
            SELECT count(*) FILTER (WHERE tbl = 'op' AND part = 0),
                count(*) FILTER (WHERE tbl = 'op' AND part = 0 AND \(OperationState.isOpen)),
                count(*) FILTER (WHERE tbl = 'blob' OR tbl = 'op' AND part > 0 AND get_byte(data, 1 + get_byte(data, 0)) <> 0),
                count(client_key), count(*) FILTER (WHERE tbl IN ('attempt', 'conflict', 'sync_log'))
                FROM rockpool.item WHERE data IS NOT NULL
            """
        ).first
        self.init((row ?? []).map { ($0 ?? []).reduce(0) { $0 << 8 | Int64($1) } })
    }

    private init(_ counts: [Int64]) {
        func count(_ place: Int) -> Int64 { place < counts.count ? counts[place] : 0 }
        (operations, open, bodies, keys, history) = (count(0), count(1), count(2), count(3), count(4))
    }
}
