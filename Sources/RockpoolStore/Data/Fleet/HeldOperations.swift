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
        try Int.fetchOne(db.cachedStatement(sql: "SELECT count(*) FROM op WHERE seq >= ?"), arguments: [first]) ?? 0
    }

    // MARK: joining

    /// Makes held operations of the open ones of an outbox that was never shared; the rest of it is forgotten, since the numbers of the
    /// fleet take its place.
    static func withdraw(in db: Database) throws {
        try db.execute(sql: "DELETE FROM op WHERE state IN (\(OperationState.endedList)); DELETE FROM sync_log; DELETE FROM conflict;")
        let open = try Int64.fetchAll(db, sql: "SELECT seq FROM op WHERE seq < ?", arguments: [first])
        try renumber(open.map { ($0, first + $0) }, linkedFrom: 0, in: db)
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

    /// What one transaction of the fleet takes over, so that the other nodes get their turn within their 2 s.
    static let portion = (writes: 256, bytes: Int64.mib(1))

    /// Returns the first held operations, in their order: at least one, and no more than fit in `portion`; without it all.
    static func next(in db: Database, upTo portion: (writes: Int, bytes: Int64)?) throws -> [Int64] {
        let sql = "SELECT seq, body_len FROM op WHERE seq >= ? ORDER BY seq LIMIT ?"
        var (sequences, bytes): ([Int64], Int64) = ([], 0)
        for row in try Row.fetchAll(db.cachedStatement(sql: sql), arguments: [first, portion?.writes ?? -1]) {
            bytes += row[1]
            if let portion, !sequences.isEmpty, bytes > portion.bytes { break }
            sequences.append(row[0])
        }
        return sequences
    }

    /// Gives held operations, the first of all, the next shared numbers, in their order.
    /// - Parameter start: the first number that was given since held operations were there; nil if these are the first.
    /// - Returns: their new sequences.
    @discardableResult
    static func handOver(_ held: [Int64], in db: Database, linkedFrom start: Int64? = nil) throws -> [Int64] {
        guard let end = held.last else { return [] }
        let last = try lastNumber("op", in: db)
        let numbers = held.enumerated().map { ($1, last + 1 + Int64($0)) }
        try FeedApplication.number("op".databaseValue, (last + Int64(held.count)).databaseValue, in: db)
        try renumber(numbers, linkedFrom: start ?? last + 1, in: db)
        // A copy that a write was based on came with it, and its row has no number.
        try db.execute(
            sql: """
                INSERT INTO fleet_change (tbl, part, k1, k2, k3)
                    SELECT 'snapshot', 0, base_sha, '', '' FROM op WHERE seq > ? AND seq < ? AND base_sha IS NOT NULL
                """, arguments: [last, first])
        // The log in its order: what follows a line of a later operation comes with that.
        let next = try Int64.fetchOne(db, sql: "SELECT min(n) FROM sync_log WHERE n >= ? AND seq > ?", arguments: [first, end])
        let lines = "SELECT n FROM sync_log WHERE n >= ? AND n < ? ORDER BY n"
        var line = try lastNumber("sync_log", in: db)
        for old in try Int64.fetchAll(db, sql: lines, arguments: [first, next ?? .max]) {
            line += 1
            try db.cachedStatement(sql: "UPDATE sync_log SET n = ? WHERE n = ?").execute(arguments: [line, old])
        }
        try FeedApplication.number("sync_log".databaseValue, line.databaseValue, in: db)
        return numbers.map(\.1)
    }

    private static func lastNumber(_ table: String, in db: Database) throws -> Int64 {
        try Int64.fetchOne(db, sql: "SELECT seq FROM sqlite_sequence WHERE name = ?", arguments: [table]) ?? 0
    }

    /// Gives operations other numbers, wherever they are named.
    private static func renumber(_ numbers: [(Int64, Int64)], linkedFrom start: Int64, in db: Database) throws {
        guard !numbers.isEmpty else { return }
        try db.execute(
            sql: """
                PRAGMA defer_foreign_keys = ON;
                CREATE TEMP TABLE IF NOT EXISTS fleet_number (old INTEGER PRIMARY KEY, new INTEGER NOT NULL);
                DELETE FROM temp.fleet_number;
                """)
        for (old, new) in numbers {
            try db.cachedStatement(sql: "INSERT INTO temp.fleet_number VALUES (?, ?)").execute(arguments: [old, new])
        }
        let from = "FROM temp.fleet_number AS given WHERE given.old"
        try db.execute(sql: "UPDATE op SET seq = given.new, place = iif(place = seq, given.new, place) \(from) = op.seq")
        for (table, column) in naming { try db.execute(sql: "UPDATE \(table) SET \(column) = given.new \(from) = \(table).\(column)") }
        try db.execute(sql: "UPDATE sync_log SET seq = given.new \(from) = sync_log.seq AND sync_log.n >= \(first)")
        // Without an index: only operations that were held name one that is.
        for column in ["superseded_by", "fixes"] {
            try db.execute(sql: "UPDATE op SET \(column) = given.new \(from) = op.\(column) AND op.seq >= ?", arguments: [start])
        }
    }

    /// The columns that name an operation by its sequence.
    private static let naming = [
        ("op", "base_seq"), ("id_map", "created_by"), ("op_dep", "needs"), ("op_dep", "seq"), ("op_ref", "seq"), ("attempt", "seq"),
        ("unproved", "seq"), ("conflict", "seq"),
    ]
}
