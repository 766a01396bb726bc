// The bytes on each share of the outbox, counted by triggers on the writer's own connection (docs/reference/behaviour.md#shares *queue
// shares*).
import GRDB
import RockpoolCore

/// Sums of open operations by account: the name of a principal, the empty string without one, `*` for all unproved operations together; and
/// `@` with the name of an upstream for all operations of that upstream. Telemetry counts on its route's queue alone
/// (`Lane.telemetryQueue`): no other write has less room for it.
///
/// The sums are in the temporary database of the writing connection. They are correct from the start, whichever statement changes a row;
/// they are rolled back with the transaction or savepoint of the change; and they are never written to the disk. A sum is read by its key,
/// however many operations are open.
enum ShareSums {
    /// Bytes counted for a row beside its texts and bodies: its other columns and its index entries.
    static let rowBytes = 512

    /// Returns the account on which an operation of `share` is counted.
    static func account(_ share: OutboxShare, of principal: String?) -> String {
        share == .unproved ? unproved : principal ?? ""
    }

    /// Returns the bytes counted on an account. Call it on the connection that `begin` was called on.
    static func bytes(on account: String, in db: Database) throws -> Int64 {
        try Int64.fetchOne(db.cachedStatement(sql: "SELECT bytes FROM share WHERE account = ?"), arguments: [account]) ?? 0
    }

    /// Returns the bytes of the open operations of an upstream. Call it on the connection that `begin` was called on.
    static func bytes(of upstream: String, in db: Database) throws -> Int64 { try bytes(on: "@" + upstream, in: db) }

    /// Returns the bytes of the open operations by account, the initial value for `begin`. Any connection may call it.
    static func counted(in db: Database) throws -> [String: Int64] {
        // Row by row: to group by a computed account SQLite would sort all of them.
        let sql = "SELECT \(owner("op")), \(upstream("op")), \(cost("op")) FROM op WHERE \(OperationState.isOpen)"
        var sums: [String: Int64] = [:]
        _ = try db.cachedStatement(sql: sql).all([], in: db) { columns in
            let (owner, upstream): (String, String) = (try columns.next(), try columns.next())
            let bytes: Int64 = try columns.next()
            sums[owner, default: 0] += bytes
            sums[upstream, default: 0] += bytes
        }
        return sums
    }

    /// Starts counting changes. Call it once, on the writing connection.
    /// - Parameter sums: the bytes of the operations already open.
    static func begin(in db: Database, with sums: [String: Int64]) throws {
        try db.execute(
            sql: """
                CREATE TEMP TABLE share (account TEXT PRIMARY KEY, bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID;
                CREATE TEMP TRIGGER share_op_came AFTER INSERT ON main.op WHEN \(isOpen("new")) BEGIN
                    \(add(cost("new"), to: owner("new", isProved: true))) \(add(cost("new"), to: upstream("new")))
                END;
                CREATE TEMP TRIGGER share_op_leaves BEFORE UPDATE OF \(columns) ON main.op WHEN \(isOpen("old")) AND (\(isChange)) BEGIN
                    \(take(cost("old"), from: owner("old"))) \(take(cost("old"), from: upstream("old")))
                END;
                CREATE TEMP TRIGGER share_op_returned AFTER UPDATE OF \(columns) ON main.op WHEN \(isOpen("new")) AND (\(isChange)) BEGIN
                    \(add(cost("new"), to: owner("new"))) \(add(cost("new"), to: upstream("new")))
                END;
                CREATE TEMP TRIGGER share_op_goes BEFORE DELETE ON main.op WHEN \(isOpen("old")) BEGIN
                    \(take(cost("old"), from: owner("old"))) \(take(cost("old"), from: upstream("old")))
                END;
                CREATE TEMP TRIGGER share_unproved AFTER INSERT ON main.unproved WHEN \(isOpen(of: "new")) BEGIN
                    \(take(cost(of: "new"), from: "new.principal")) \(add(cost(of: "new"), to: "'\(unproved)'"))
                END;
                CREATE TEMP TRIGGER share_proved AFTER DELETE ON main.unproved WHEN \(isOpen(of: "old")) BEGIN
                    \(take(cost(of: "old"), from: "'\(unproved)'")) \(add(cost(of: "old"), to: "old.principal"))
                END;
                """)
        for part in parts {
            try db.execute(
                sql: """
                    CREATE TEMP TRIGGER share_\(part.table)_came AFTER INSERT ON main.\(part.table) WHEN \(isOpen(of: "new")) BEGIN
                        \(add(part.cost("new"), to: owner(of: "new"))) \(add(part.cost("new"), to: upstream(of: "new")))
                    END;
                    CREATE TEMP TRIGGER share_\(part.table)_went AFTER DELETE ON main.\(part.table) WHEN \(isOpen(of: "old")) BEGIN
                        \(take(part.cost("old"), from: owner(of: "old"))) \(take(part.cost("old"), from: upstream(of: "old")))
                    END;
                    """)
        }
        for (account, bytes) in sums { try db.execute(sql: "INSERT INTO share VALUES (?, ?)", arguments: [account, bytes]) }
    }

    private static let unproved = "*"

    // MARK: SQL fragments

    /// The columns that the count depends on.
    private static let columns = "state, principal, body_len, headers, target, idem_key, base_sha"

    /// True if a count changes. Evaluated before and after a change with the same result, so only columns of the row are used: referenced
    /// rows may change with it.
    private static let isChange = """
        \(isOpen("old")) <> \(isOpen("new")) OR old.principal <> new.principal OR old.body_len <> new.body_len
            OR old.headers <> new.headers OR old.target <> new.target OR old.idem_key <> new.idem_key OR old.base_sha IS NOT new.base_sha
        """

    private static func isOpen(_ row: String) -> String { OperationState.isOpen(row) }

    private static func isOpen(of row: String) -> String {
        "EXISTS (SELECT 1 FROM op WHERE op.seq = \(row).seq AND \(isOpen("op")))"
    }

    private static func owner(_ row: String, isProved: Bool = false) -> String {
        let others = isProved ? "" : " WHEN EXISTS (SELECT 1 FROM unproved WHERE unproved.seq = \(row).seq) THEN '\(unproved)'"
        return "CASE WHEN \(TelemetryRow.condition(row)) THEN \(TelemetryRow.queue(row))\(others) ELSE \(row).principal END"
    }

    private static func upstream(_ row: String) -> String {
        "'@' || iif(\(TelemetryRow.condition(row)), ' ', '') || \(row).upstream"
    }

    /// The accounts of the operation that a row of another table belongs to.
    private static func owner(of row: String) -> String { "(SELECT \(owner("op")) FROM op WHERE op.seq = \(row).seq)" }
    private static func upstream(of row: String) -> String { "(SELECT \(upstream("op")) FROM op WHERE op.seq = \(row).seq)" }

    /// A table with rows of one operation, as many as its client likes: the operations that it needs, and the places of local ids.
    private struct Part: Sendable {
        let table: String
        /// SQL for the bytes of a row.
        let cost: @Sendable (_ row: String) -> String
    }

    private static let parts = [
        Part(table: "op_dep") { _ in "\(needBytes)" }, Part(table: "op_ref") { "(\(needBytes) + length(\($0).place))" },
    ]

    /// Bytes counted for a dependency, with its entry in the index.
    static let needBytes = 64

    /// The cost of a row: the body, its base representation, the fields, target and key as often as columns and indexes repeat them, and its
    /// rows of other tables. A representation or file shared by several operations is counted for each.
    static func cost(_ row: String) -> String {
        let others = parts.map { "coalesce((SELECT sum(\($0.cost($0.table))) FROM \($0.table) WHERE \($0.table).seq = \(row).seq), 0)" }
        return """
            (\(rowBytes) + \(row).body_len + length(\(row).headers) + 6 * (length(\(row).target) + length(\(row).idem_key))
                + coalesce((SELECT length(body) FROM snapshot WHERE sha = \(row).base_sha), 0) + \(others.joined(separator: " + ")))
            """
    }

    private static func cost(of row: String) -> String { "(SELECT \(cost("op")) FROM op WHERE op.seq = \(row).seq)" }

    private static func add(_ cost: String, to account: String) -> String {
        "INSERT INTO share VALUES (\(account), \(cost)) ON CONFLICT (account) DO UPDATE SET bytes = bytes + excluded.bytes;"
    }

    private static func take(_ cost: String, from account: String) -> String {
        """
        UPDATE share SET bytes = bytes - \(cost) WHERE account = \(account);
        DELETE FROM share WHERE account = \(account) AND bytes <= 0;
        """
    }
}

/// SQL for rows of telemetry writes, which their lane shows (docs/outbox.md#telemetry).
enum TelemetryRow {
    /// True for a telemetry write.
    static func condition(_ row: String) -> String { "substr(\(row).lane, length(\(row).upstream) + 1, 3) = ' # '" }

    /// The name of its queue (`Lane.telemetryQueue`).
    static func queue(_ row: String) -> String { "substr(\(row).lane, 1, length(\(row).lane) - \(Lane.numberLength + 1))" }
}
