// Operations that this node accepted while the shared database was away (docs/fleet.md#away).
import FoundationEssentials
import GRDB
import RockpoolCore

/// Held operations have sequences in a range of their own, which no other node uses; they are handed over under the same ids, before
/// anything newer.
enum HeldOperations {
    /// The first sequence of the range, 2^52: JSON numbers stay exact.
    static let first: Int64 = 0x10_0000_0000_0000

    // MARK: acceptance

    /// Makes new rows get numbers of the range.
    /// - Returns: the shared numbers, for `endNumbering`.
    static func beginNumbering(in db: Database) throws -> [(table: String, last: Int64)] {
        try ReplicatedTable.numbered.map { table in
            let shared = try Int64.fetchOne(db, sql: "SELECT seq FROM sqlite_sequence WHERE name = ?", arguments: [table]) ?? 0
            let held = try Int64.fetchOne(db, sql: "SELECT max(\(ReplicatedTable.number(of: table))) FROM \(table)") ?? 0
            try FeedApplication.number(table.databaseValue, max(first - 1, held).databaseValue, in: db)
            return (table, shared)
        }
    }

    static func endNumbering(_ shared: [(table: String, last: Int64)], in db: Database) throws {
        for (table, last) in shared { try FeedApplication.number(table.databaseValue, last.databaseValue, in: db) }
    }

    static func count(in db: Database) throws -> Int {
        try Int.fetchOne(db, sql: "SELECT count(*) FROM op WHERE seq >= ?", arguments: [first]) ?? 0
    }

    // MARK: joining

    /// Makes held operations of the open ones of an outbox that was never shared; the rest of it is forgotten, since the numbers of the
    /// fleet take its place.
    static func withdraw(in db: Database) throws {
        try db.execute(sql: "PRAGMA defer_foreign_keys = ON")
        try db.execute(sql: "DELETE FROM op WHERE state IN (\(OperationRow.endedStates)); DELETE FROM sync_log; DELETE FROM conflict;")
        for old in try Int64.fetchAll(db, sql: "SELECT seq FROM op WHERE seq < ? ORDER BY seq DESC", arguments: [first]) {
            for sql in renumbering { try db.cachedStatement(sql: sql).execute(arguments: [first + old, old]) }
            for sql in linking { try db.cachedStatement(sql: sql).execute(arguments: [first + old, old, 0]) }
        }
        // In flight when the last run ended.
        try db.execute(sql: "UPDATE op SET state = 'uncertain', reason = 'crashed' WHERE state = 'inflight'")
    }

    // MARK: hand-over

    /// A row of another node has the id, or the client's key, of a held operation: with the id it is the same operation, which is shared
    /// already; with the key only, the held one is sent without it.
    /// - Returns: true if something was changed, so that the row may fit now.
    static func makeWay(for row: RowBytes, of table: String, in db: Database) throws -> Bool {
        guard table == "op" else { return false }
        try db.execute(sql: "DELETE FROM op WHERE id = ? AND seq >= ?", arguments: [row["id"], first])
        if db.changesCount > 0 { return true }
        try db.execute(
            sql: "UPDATE op SET client_key = NULL WHERE principal = ? AND client_key = ? AND seq >= ?",
            arguments: [row["principal"], row["client_key"], first])
        return db.changesCount > 0
    }

    /// Gives held operations the next shared numbers, in their order.
    /// - Returns: the operations as they were held, and their new sequences.
    static func handOver(in db: Database) throws -> [(held: QueuedWrite, sequence: Int64)] {
        let held = try Int64.fetchAll(db, sql: "SELECT seq FROM op WHERE seq >= ? ORDER BY seq", arguments: [first])
        guard !held.isEmpty else { return [] }
        try db.execute(sql: "PRAGMA defer_foreign_keys = ON")
        var handed: [(held: QueuedWrite, sequence: Int64)] = []
        for old in held {
            guard let operation = try DataStore.fetch(in: db, where: "seq = ?", [old]) else { continue }
            let new = try next("op", in: db)
            for sql in renumbering { try db.cachedStatement(sql: sql).execute(arguments: [new, old]) }
            let start = handed.first?.sequence ?? new
            for sql in linking { try db.cachedStatement(sql: sql).execute(arguments: [new, old, start]) }
            // A copy that the write was based on came with it, and its row has no number.
            try db.cachedStatement(
                sql: """
                    INSERT INTO fleet_change (tbl, part, k1, k2, k3)
                        SELECT 'snapshot', 0, base_sha, '', '' FROM op WHERE seq = ? AND base_sha IS NOT NULL
                    """
            ).execute(arguments: [new])
            handed.append((operation, new))
        }
        for old in try Int64.fetchAll(db, sql: "SELECT n FROM sync_log WHERE n >= ? ORDER BY n", arguments: [first]) {
            try db.execute(sql: "UPDATE sync_log SET n = ? WHERE n = ?", arguments: [try next("sync_log", in: db), old])
        }
        return handed
    }

    private static func next(_ table: String, in db: Database) throws -> Int64 {
        let last = try Int64.fetchOne(db, sql: "SELECT seq FROM sqlite_sequence WHERE name = ?", arguments: [table]) ?? 0
        try FeedApplication.number(table.databaseValue, (last + 1).databaseValue, in: db)
        return last + 1
    }

    /// The columns that name an operation by its sequence.
    private static let renumbering =
        [
            "UPDATE op SET seq = ?1, place = CASE WHEN place = ?2 THEN ?1 ELSE place END WHERE seq = ?2",
            "UPDATE op SET base_seq = ?1 WHERE base_seq = ?2", "UPDATE id_map SET created_by = ?1 WHERE created_by = ?2",
            "UPDATE op_dep SET needs = ?1 WHERE needs = ?2", "UPDATE sync_log SET seq = ?1 WHERE seq = ?2 AND n >= \(first)",
        ] + ["op_dep", "op_ref", "attempt", "unproved", "conflict"].map { "UPDATE \($0) SET seq = ?1 WHERE seq = ?2" }

    /// Columns without an index; only operations that were held name one that is.
    private static let linking = ["superseded_by", "fixes"].map { "UPDATE op SET \($0) = ?1 WHERE \($0) = ?2 AND seq >= ?3" }
}
