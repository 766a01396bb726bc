// The relations of operations to others, read from their lanes and dependencies (docs/outbox.md#lanes, docs/outbox.md#waiting).
import GRDB
package import RockpoolCore

extension DataStore {
    /// Returns the relations by sequence; deleted operations are absent.
    package func standings(of operations: [QueuedWrite], rules: LaneRules) async throws -> [Int64: OperationRelations] {
        try await reading { db in
            try operations.reduce(into: [:]) { standings, operation in
                standings[operation.sequence] = try Self.standing(of: operation, rules: rules, in: db)
            }
        }
    }

    /// True if the create that assigned a local id was given up before the upstream had the item, so that the id will never be mapped.
    package func isGivenUp(_ id: LocalID) async throws -> Bool {
        try await reading { db in
            try Bool.fetchOne(
                db,
                sql: """
                    SELECT op.state = 'cancelled' FROM id_map JOIN op ON op.seq = id_map.created_by
                        WHERE id_map.local_id = ? AND id_map.server_id IS NULL
                    """,
                arguments: [id.text]) ?? false
        }
    }

    /// True if an unsent operation waits behind the row of `op` in its lane, or an open one needs it.
    static let isAwaited = """
        (\(OperationState.isOpen("op")) AND EXISTS (SELECT 1 FROM op AS later WHERE later.lane = op.lane AND later.upstream = op.upstream
            AND later.place > op.place AND later.principal IS op.principal AND later.state = 'pending' AND \(OperationState.isOpen("later")))
        OR EXISTS (SELECT 1 FROM op_dep JOIN op AS later ON later.seq = op_dep.seq WHERE op_dep.needs = op.seq
            AND (later.state = 'pending' OR op_dep.kind NOT IN ('group', 'collection')) AND \(OperationState.isOpen("later"))))
        """

    private static func standing(of operation: QueuedWrite, rules: LaneRules, in db: Database) throws -> OperationRelations? {
        let statement = try db.cachedStatement(
            sql: """
                SELECT (SELECT id FROM op AS next WHERE next.seq = op.superseded_by), (SELECT id FROM op AS old WHERE old.seq = op.fixes),
                    \(isAwaited)
                FROM op WHERE seq = ?
                """)
        guard let row = try Row.fetchOne(statement, arguments: [operation.sequence]) else { return nil }
        var columns = RowReader(row)
        var standing = OperationRelations(
            supersededBy: try columns.nextIfAny(), fixes: try columns.nextIfAny(), isAwaited: try columns.next())
        if operation.state == .pending {
            var summary = rules.routes?.summary(of: operation) ?? OperationSummary(operation)
            summary.needs = []
            let head = try blocker(of: summary, in: operation.lane, rules: rules, db: db)
            if let head { standing.ahead = try links([head.sequence], in: db).first }
        }
        let needs = try Int64.fetchAll(
            try db.cachedStatement(sql: "SELECT needs FROM op_dep WHERE seq = ? ORDER BY needs"), arguments: [operation.sequence])
        if !needs.isEmpty { standing.dependsOn = try links(needs, in: db) }
        return standing
    }
}
