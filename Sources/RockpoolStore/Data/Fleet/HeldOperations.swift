// Operations that this node accepted while the shared database was away (docs/fleet.md#away).
import FoundationEssentials
import GRDB
import RockpoolCore

/// Held operations have sequences in a range of their own, which no other node uses; they are handed over under the same ids, before
/// anything newer.
enum HeldOperations {
    /// The first sequence of the range, 2^52: JSON numbers stay exact.
    static let first: Int64 = 0x10_0000_0000_0000

    /// True for a number of the range.
    static func isHeld(_ value: DatabaseValue) -> Bool { (Int64.fromDatabaseValue(value) ?? 0) >= first }

    // MARK: - Acceptance

    /// Makes new rows get numbers of the range.
    /// - Parameter last: the last that this process has given to an operation: a number that was handed over names nothing else before the end.
    /// - Returns: the shared numbers, for `endNumbering`.
    static func beginNumbering(in db: Database, after last: Int64) throws -> [(table: String, last: Int64)] {
        try ReplicatedTable.numbered.map { table in
            let shared = try Int64.fetchOne(db, sql: "SELECT seq FROM sqlite_sequence WHERE name = ?", arguments: [table]) ?? 0
            let held = try Int64.fetchOne(db, sql: "SELECT max(\(ReplicatedTable.number(of: table))) FROM \(table)") ?? 0
            try FeedApplication.number(table.databaseValue, max(first - 1, held, table == "op" ? last : 0).databaseValue, in: db)
            return (table, shared)
        }
    }

    static func endNumbering(_ shared: [(table: String, last: Int64)], in db: Database) throws {
        for (table, last) in shared { try FeedApplication.number(table.databaseValue, last.databaseValue, in: db) }
    }

    static func count(in db: Database) throws -> Int {
        try Int.fetchOne(db.cachedStatement(sql: "\(withKept) SELECT count(*) FROM op WHERE seq >= ? AND \(isNotKept)"), arguments: [first])
            ?? 0
    }

    // MARK: - What the shared database refuses

    /// The operations that it has refused, until a person sends them again, and those that need one of them.
    private static let withKept = """
        WITH RECURSIVE kept (seq) AS (
            SELECT seq FROM fleet_kept JOIN op USING (seq) WHERE op.state <> 'pending'
            UNION SELECT op_dep.seq FROM kept JOIN op_dep ON op_dep.needs = kept.seq
        )
        """
    private static let isNotKept = "seq NOT IN (SELECT seq FROM kept)"

    /// Keeps an operation at this node, in a transaction of its own: it is dead, where it can be.
    static func keepBack(_ sequence: Int64, detail: String, now: Timestamp, in db: Database) throws {
        try db.execute(
            sql: "INSERT INTO fleet_kept VALUES (?, ?) ON CONFLICT (seq) DO UPDATE SET detail = excluded.detail",
            arguments: [sequence, detail])
        guard
            let state = try String.fetchOne(db, sql: "SELECT state FROM op WHERE seq = ?", arguments: [sequence]).flatMap(
                OperationState.init),
            OperationMachine.permits(from: state, to: .dead)
        else { return }
        try DataStore.transition(in: db, sequence: sequence, from: state, to: .dead, reason: .unshared, detail: detail, now: now)
    }

    /// Gives lines of the log about operations that stay here numbers of the range: other nodes have what follows them.
    static func setApart(_ lines: [Int64], in db: Database) throws {
        let statement = try db.cachedStatement(
            sql: "UPDATE sync_log SET n = (SELECT max(max(n) + 1, \(first)) FROM sync_log) WHERE n = ?")
        for line in lines { try statement.execute(arguments: [line]) }
    }

    /// Returns the numbers of the range below `end` that still name operations.
    static func numbers(below end: Int64, in db: Database) throws -> Set<Int64> {
        try Set(Int64.fetchAll(db.cachedStatement(sql: "SELECT seq FROM op WHERE seq >= ? AND seq < ?"), arguments: [first, end]))
    }

    // MARK: - Joining

    /// Makes held operations of the open ones of an outbox that was never shared, before those that are held already; the rest of it is
    /// forgotten, since the numbers of the fleet take its place.
    /// - Returns: the first of their numbers.
    static func withdraw(in db: Database) throws -> Int64 {
        try db.execute(sql: "DELETE FROM op WHERE state IN (\(OperationState.endedList)); DELETE FROM sync_log; DELETE FROM conflict;")
        let open = try Int64.fetchAll(db, sql: "SELECT seq FROM op ORDER BY seq")
        // Beyond every number that there is: none is given twice.
        let start = max(first, (open.last ?? 0) + 1)
        try renumber(open.enumerated().map { ($1, start + Int64($0)) }, linkedFrom: 0, in: db)
        // In flight when the last run ended.
        try db.execute(sql: "UPDATE op SET state = 'uncertain', reason = 'crashed' WHERE state = 'inflight'")
        return start
    }

    // MARK: - Hand-over

    /// A held operation that stands in the way of a row of the fleet.
    enum Twin {
        /// It has the row's id: it is the same operation, which is shared already. With the name of its body if that is in a file.
        case same(Int64, Data?)
        /// It has the row's client and key.
        case ofKey(Int64)
    }

    /// Returns the held operation with the id, or the client's key, of a row of another node.
    static func twin(of row: RowBytes, in db: Database) throws -> Twin? {
        let same = "SELECT seq, blob_sha FROM op WHERE id = ? AND seq >= ?"
        if let found = try Row.fetchOne(db, sql: same, arguments: [row["id"], first]) { return .same(found[0], found[1]) }
        return try Int64.fetchOne(
            db, sql: "SELECT seq FROM op WHERE principal = ? AND client_key = ? AND seq >= ?",
            arguments: [row["principal"], row["client_key"], first]
        ).map { .ofKey($0) }
    }

    /// Gives the key of a client to a row of the fleet. An equal write is one that the client has sent through two nodes: the held one is not
    /// sent, unless others need it, or it may have been.
    /// - Returns: true if it is not sent.
    static func giveWay(_ sequence: Int64, to row: RowBytes, now: Timestamp, in db: Database) throws -> Bool {
        try db.execute(sql: "UPDATE op SET client_key = NULL WHERE seq = ?", arguments: [sequence])
        let isEqual = """
            SELECT state FROM op WHERE seq = ?1 AND fingerprint = ?2 AND NOT EXISTS (SELECT 1 FROM op_dep WHERE needs = ?1)
                AND NOT EXISTS (SELECT 1 FROM op_ref WHERE op_ref.local_id = op.local_id)
            """
        guard
            let state = try String.fetchOne(db, sql: isEqual, arguments: [sequence, row["fingerprint"]]).flatMap(OperationState.init),
            OperationMachine.permits(from: state, to: .superseded)
        else { return false }
        try DataStore.transition(
            in: db, sequence: sequence, from: state, to: .superseded, reason: .squashed,
            detail: "the client sent it through another node too", update: .replaced, values: [row["seq"]], now: now)
        // The line is one of a held operation.
        let line = "SELECT n FROM sync_log WHERE seq = ? AND n < ?"
        try setApart(Int64.fetchAll(db, sql: line, arguments: [sequence, first]), in: db)
        return true
    }

    /// What one transaction of the fleet takes over, so that the other nodes get their turn within their 2 s.
    static let portion = (writes: 256, bytes: Int64.mib(1))

    /// Returns the first held operations, in their order: at least one, and no more than fit in `portion`; without it all.
    static func next(in db: Database, upTo portion: (writes: Int, bytes: Int64)?) throws -> [Int64] {
        let sql = "\(withKept) SELECT seq, body_len FROM op WHERE seq >= ? AND \(isNotKept) ORDER BY seq LIMIT ?"
        var (sequences, bytes): ([Int64], Int64) = ([], 0)
        for row in try Row.fetchAll(db.cachedStatement(sql: sql), arguments: [first, portion?.writes ?? -1]) {
            bytes += row[1]
            if let portion, !sequences.isEmpty, bytes > portion.bytes { break }
            sequences.append(row[0])
        }
        return sequences
    }

    /// Returns the names of the bodies in files of the next portion.
    static func bodies(upTo writes: Int, in db: Database) throws -> [Data] {
        let statement = try db.cachedStatement(sql: "SELECT blob_sha FROM op WHERE seq = ? AND blob_sha IS NOT NULL")
        return try next(in: db, upTo: (writes, portion.bytes)).compactMap { try Data.fetchOne(statement, arguments: [$0]) }
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
        let later = "\(withKept) SELECT min(n) FROM sync_log WHERE n >= ? AND seq > ? AND \(isNotKept)"
        let next = try Int64.fetchOne(db, sql: later, arguments: [first, end])
        let lines = "SELECT n FROM sync_log WHERE n >= ?1 AND n < ?2 AND coalesce(seq, 0) < ?1 ORDER BY n"
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
        // The lines of a held operation are of its range.
        try db.execute(sql: "UPDATE sync_log SET seq = given.new \(from) = sync_log.seq AND sync_log.n >= \(first)")
        try db.execute(sql: "DELETE FROM fleet_kept WHERE seq IN (SELECT old FROM temp.fleet_number)")
        // What stays here is nothing to other nodes.
        try db.execute(
            sql: """
                UPDATE op SET base_seq = NULL WHERE seq IN (SELECT new FROM temp.fleet_number) AND base_seq >= \(first) AND seq < \(first);
                UPDATE op SET superseded_by = NULL WHERE seq IN (SELECT new FROM temp.fleet_number) AND seq < \(first)
                    AND superseded_by IN (SELECT seq FROM fleet_kept)
                """)
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
