// The statements of `live_write`: its columns are columns of `op`, so that a row becomes an operation as it is (docs/outbox.md#schema).
import GRDB
import RockpoolCore

enum LiveWriteRow {
    /// The columns of `op` that are not in `live_write`: what an operation gets when it is made, and the representation that it builds on.
    private static let absent: Set<String> = [
        "base_sha", "base_seq", "viewer", "base_seen", "state", "reason", "last_error", "first_sent_at", "next_at", "sent_tick",
    ]
    private static let columns = OperationColumn.bound.filter { !absent.contains($0.name) }
    private static let names = columns.map(\.name).joined(separator: ", ")

    private static let insertion: String = {
        let values = columns.compactMap(\.placeholder).joined(separator: ", ")
        return "INSERT INTO live_write (n, token, unproved, \(names)) VALUES (?, ?, ?, \(values))"
    }()

    /// Makes an operation of the row ?1 at the moment ?2: uncertain, and due for its first look.
    private static let adoption: String = {
        let placed = OperationColumn.table.filter { $0.bind == nil && $0.inserted != nil }
        let given = (placed.map(\.name) + ["state", "reason", "first_sent_at", "next_at", "sent_tick"]).joined(separator: ", ")
        let values = placed.compactMap(\.inserted) + ["'uncertain'", "'\(OperationReason.crashed.rawValue)'", "accepted_at", "?2", "0"]
        return "INSERT INTO op (\(names), \(given)) SELECT \(names), \(values.joined(separator: ", ")) FROM live_write WHERE n = ?1"
    }()

    private static let share = Array("unproved".utf8)
    private static let bindings = columns.compactMap { column in column.bind.map { (name: Array(column.name.utf8), value: $0) } }

    /// Returns the values of the row of a write, as they are kept in a file: those of a `RowBytes`.
    static func encoded(_ new: QueuedWriteDraft, now: Timestamp) -> [UInt8] {
        let row = NewOperationRow(new: new, base: nil, pinned: nil, now: now)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(.kib(1))
        RowBytes.append((new.share == .unproved).databaseValue, named: share, to: &bytes)
        for binding in bindings { RowBytes.append(binding.value(row)?.databaseValue ?? .null, named: binding.name, to: &bytes) }
        return bytes
    }

    /// Inserts a row with values that `encoded` has made, perhaps in another version.
    static func insert(_ values: RowBytes, token: Int64, in db: Database) throws {
        let known = columns.filter { column in values.values.contains { $0.name == column.name } }
        let sql = """
            INSERT INTO live_write (n, token, unproved, \(known.map(\.name).joined(separator: ", ")))
                VALUES ((SELECT coalesce(max(n) + 1, 0) FROM live_write), ?, ?, \(known.compactMap(\.placeholder).joined(separator: ", ")))
            """
        try db.cachedStatement(sql: sql).run([token.databaseValue, values["unproved"]] + known.map { values[$0.name] }, in: db)
    }

    static func insert(_ new: QueuedWriteDraft, as trace: LiveWriteTrace, in db: Database, now: Timestamp) throws {
        let row = NewOperationRow(new: new, base: nil, pinned: nil, now: now)
        let own = [trace.slot.databaseValue, trace.token.databaseValue, (new.share == .unproved).databaseValue]
        try db.cachedStatement(sql: insertion).run(own + columns.map { $0.value(of: row) }, in: db)
    }

    static func delete(_ traces: [LiveWriteTrace], in db: Database) throws {
        guard !traces.isEmpty else { return }
        let statement = try db.cachedStatement(sql: "DELETE FROM live_write WHERE n = ? AND token = ?")
        for trace in traces { try statement.run([trace.slot.databaseValue, trace.token.databaseValue], in: db) }
    }

    /// Makes an operation of a row, as it would be if it had been queued before its live attempt: with that attempt as number 0, its local
    /// id and its share. Needs none of the dependencies of a queued write: a write is sent live only if it need not wait.
    static func adopt(_ trace: LiveWriteTrace, in db: Database, now: Timestamp) throws {
        try db.execute(sql: adoption, arguments: [trace.slot, now.milliseconds])
        let sequence = db.lastInsertedRowID
        try db.execute(
            sql: """
                INSERT INTO attempt (seq, n, started, ended, error, evidence)
                    SELECT ?1, 0, accepted_at, max(accepted_at, ?3), 'crashed', 'maybe' FROM live_write WHERE n = ?2
                """, arguments: [sequence, trace.slot, now.milliseconds])
        try db.execute(
            sql: """
                INSERT OR IGNORE INTO id_map (local_id, upstream, entity_type, created_by)
                    SELECT local_id, upstream, entity_type, ?1 FROM live_write WHERE n = ?2 AND local_id IS NOT NULL
                """, arguments: [sequence, trace.slot])
        try db.execute(
            sql: "INSERT INTO unproved (seq, principal) SELECT ?1, principal FROM live_write WHERE n = ?2 AND unproved",
            arguments: [sequence, trace.slot])
        try DataStore.log(
            in: db, sequence: sequence, .uncertain, detail: "crashed: it was being sent while its client waited", now: now)
    }

    /// False in a file of an earlier schema.
    private static func isTable(in db: Database) throws -> Bool {
        try Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'live_write')") ?? false
    }

    /// Returns every row, in the order in which the writes were sent.
    static func all(in db: Database) throws -> [LiveWriteTrace] {
        guard try isTable(in: db) else { return [] }
        return try Row.fetchAll(db, sql: "SELECT n, token FROM live_write ORDER BY accepted_at, id").map { row in
            var columns = RowReader(row)
            return LiveWriteTrace(slot: try columns.next(), token: try columns.next())
        }
    }

    /// SQL for the rows that name bodies: `id`, `blob_sha`, `body_len`, and `ended` for ended operations.
    static func bodyOwners(in db: Database) throws -> String {
        let operations = "SELECT id, blob_sha, body_len, state IN (\(OperationState.endedList)) AS ended FROM op WHERE blob_sha IS NOT NULL"
        guard try isTable(in: db) else { return "(\(operations))" }
        return "(\(operations) UNION ALL SELECT id, blob_sha, body_len, 0 FROM live_write WHERE blob_sha IS NOT NULL)"
    }
}
