// Reads of conflicts: one, a list, the open ones, and those not examined yet (docs/reference/admin-api.md#conflicts `/v1/conflicts`).
import GRDB
package import RockpoolCore

extension DataStore {
    /// Returns a conflict with its sides and fields; nil when the id is unknown.
    package func conflict(id: String) async throws -> Conflict? {
        try await reading { try Self.conflict(in: $0, where: "conflict.id = ?", [id]) }
    }

    /// Returns the open conflict of an operation with its sides and fields; nil when there is none.
    package func openConflict(of sequence: Int64) async throws -> Conflict? {
        try await reading { try Self.conflict(in: $0, where: "conflict.seq = ? AND closed IS NULL", [sequence]) }
    }

    private static func conflict(in db: Database, where condition: String, _ arguments: StatementArguments) throws -> Conflict? {
        let row = try Row.fetchOne(db, sql: "SELECT \(ConflictRow.columns) FROM conflict WHERE \(condition)", arguments: arguments)
        guard let row else { return nil }
        var columns = RowReader(row)
        return try ConflictRow.conflict(&columns, in: db)
    }

    /// Returns conflicts, the newest first, without their sides and fields.
    package func conflicts(_ filter: ConflictFilter = ConflictFilter()) async throws -> Page<Conflict> {
        let limit = min(1000, max(1, filter.limit))
        var (conditions, arguments): ([String], StatementArguments) = (["n < ?"], [filter.cursor ?? .max])
        if let isOpen = filter.isOpen { conditions.append(isOpen ? "closed IS NULL" : "closed IS NOT NULL") }
        if let upstream = filter.upstream {
            conditions.append("upstream = ?")
            arguments += [upstream]
        }
        if let entity = filter.entity {
            conditions.append("entity = ?")
            arguments += [entity]
        }
        let condition = conditions.joined(separator: " AND ")
        let sql = "SELECT n, \(ConflictRow.lightColumns) FROM conflict WHERE \(condition) ORDER BY n DESC LIMIT ?"
        arguments += [limit + 1]
        return try await reading { [arguments] db in
            let rows = try Row.fetchAll(db, sql: sql, arguments: arguments)
            var (items, next): ([Conflict], Int64?) = ([], nil)
            for row in rows.prefix(limit) {
                var columns = RowReader(row)
                next = try columns.next()
                items.append(try ConflictRow.conflict(&columns, in: db))
            }
            return Page(items: items, next: rows.count > limit ? next : nil)
        }
    }

    /// Returns the operation's rounds: how often its strategy has decided since the last decision by a person, or in total
    /// (docs/outbox.md#strategies).
    package func rounds(of sequence: Int64) async throws -> Int {
        try await reading { try Self.rounds(of: sequence, in: $0) }
    }

    static func rounds(of sequence: Int64, in db: Database) throws -> Int {
        try Int.fetchOne(
            db,
            sql: """
                SELECT count(*) FROM conflict WHERE seq = ?1 AND decided_by = 'strategy'
                    AND n > coalesce((SELECT max(n) FROM conflict WHERE seq = ?1 AND decided_by = 'person'), 0)
                """, arguments: [sequence]) ?? 0
    }

    /// `INDEXED BY`, because the planner would otherwise scan all conflicts in order of upstreams.
    static let openCounts = "SELECT upstream, count(*) FROM conflict INDEXED BY conflict_waiting WHERE closed IS NULL GROUP BY upstream"

    /// Returns the number of open conflicts by upstream; an absent upstream has none.
    package func openConflictCounts() async throws -> [String: Int] {
        try await reading { db in
            let rows = try Row.fetchAll(db, sql: Self.openCounts)
            return try rows.reduce(into: [:]) { counts, row in
                var columns = RowReader(row)
                counts[try columns.next(String.self)] = try columns.next(Int.self)
            }
        }
    }

    /// Returns operations in conflict without an open conflict row: theirs must still be fetched and compared.
    package func unexaminedConflicts() async throws -> [QueuedWrite] {
        try await light(
            """
            state = 'conflicted' AND NOT EXISTS (SELECT 1 FROM conflict WHERE conflict.seq = op.seq AND closed IS NULL) ORDER BY seq
            """)
    }
}
