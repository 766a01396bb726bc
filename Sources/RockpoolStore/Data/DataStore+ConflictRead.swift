// Reading conflicts: one whole, some, what waits for a person, what nobody has looked at yet (contract §5 `/v1/conflicts`).
import GRDB
package import RockpoolCore

/// Which conflicts a list takes.
package struct ConflictFilter: Hashable, Sendable {
    package var upstream: String?
    /// The entity's path.
    package var entity: String?
    /// Only those that wait for a person, or only those that are decided; nil is all.
    package var isOpen: Bool?
    /// 1…1000.
    package var limit: Int
    /// `next` of the page before.
    package var cursor: Int64?

    package init(upstream: String? = nil, entity: String? = nil, isOpen: Bool? = true, limit: Int = 100, cursor: Int64? = nil) {
        self.upstream = upstream
        self.entity = entity
        self.isOpen = isOpen
        self.limit = limit
        self.cursor = cursor
    }
}

extension DataStore {
    /// Whole: with its sides and fields; nil when there is none of that id.
    package func conflict(id: String) async throws -> Conflict? {
        try await reading { try Self.conflict($0, where: "conflict.id = ?", [id]) }
    }

    /// The conflict of an operation that waits for a person, whole; nil when none does.
    package func openConflict(of sequence: Int64) async throws -> Conflict? {
        try await reading { try Self.conflict($0, where: "conflict.seq = ? AND closed IS NULL", [sequence]) }
    }

    private static func conflict(_ db: Database, where condition: String, _ arguments: StatementArguments) throws -> Conflict? {
        let row = try Row.fetchOne(db, sql: "SELECT \(ConflictRow.columns) FROM conflict WHERE \(condition)", arguments: arguments)
        guard let row else { return nil }
        var columns = RowReader(row)
        return try ConflictRow.conflict(&columns, db)
    }

    /// The newest first, without their sides and fields.
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
                items.append(try ConflictRow.conflict(&columns, db))
            }
            return Page(items: items, next: rows.count > limit ? next : nil)
        }
    }

    /// How often an operation's strategy has decided since a person last did, or ever: its rounds (outbox.md §1.6).
    package func rounds(of sequence: Int64) async throws -> Int {
        try await reading { db in
            try Int.fetchOne(
                db,
                sql: """
                    SELECT count(*) FROM conflict WHERE seq = ?1 AND decided_by = 'strategy'
                        AND n > coalesce((SELECT max(n) FROM conflict WHERE seq = ?1 AND decided_by = 'person'), 0)
                    """, arguments: [sequence]) ?? 0
        }
    }

    /// The index is named: the planner would rather read every conflict there ever was, in order of upstreams.
    static let openCounts = "SELECT upstream, count(*) FROM conflict INDEXED BY conflict_waiting WHERE closed IS NULL GROUP BY upstream"

    /// How many wait for a person, by upstream; absent ones are none.
    package func openConflictCounts() async throws -> [String: Int] {
        try await reading { db in
            let rows = try Row.fetchAll(db, sql: Self.openCounts)
            return try rows.reduce(into: [:]) { counts, row in
                var columns = RowReader(row)
                counts[try columns.next(String.self)] = try columns.next(Int.self)
            }
        }
    }

    /// Operations in conflict about which nobody is asked yet: theirs must still be looked at.
    package func unexaminedConflicts() async throws -> [Operation] {
        try await light(
            """
            state = 'conflicted' AND NOT EXISTS (SELECT 1 FROM conflict WHERE conflict.seq = op.seq AND closed IS NULL) ORDER BY seq
            """)
    }
}
