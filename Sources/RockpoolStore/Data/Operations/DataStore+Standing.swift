// The relations of operations to others, read from their lanes and dependencies (docs/outbox.md#lanes, docs/outbox.md#waiting).
import GRDB
package import RockpoolCore

extension DataStore {
    /// Returns the relations by sequence; deleted operations are absent.
    package func standings(of operations: [QueuedWrite]) async throws -> [Int64: OperationRelations] {
        try await reading { db in
            try operations.reduce(into: [:]) { standings, operation in
                standings[operation.sequence] = try Self.standing(of: operation.sequence, in: db)
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

    /// The states in which an operation also holds back other principals (`LaneStanding`).
    static let movingStates = "'pending', 'inflight', 'uncertain'"

    /// True if an open operation waits for the row of `op`: behind it in its lane, if its state holds that one back, or by a dependency.
    static let isAwaited = """
        (\(OperationState.isOpen("op")) AND EXISTS (SELECT 1 FROM op AS later WHERE later.lane = op.lane
            AND later.upstream = op.upstream AND later.place > op.place AND (later.principal IS op.principal OR op.state IN (\(movingStates)))
            AND \(OperationState.isOpen("later")))
        OR EXISTS (SELECT 1 FROM op_dep JOIN op AS later ON later.seq = op_dep.seq WHERE op_dep.needs = op.seq
            AND \(OperationState.isOpen("later"))))
        """

    private static func standing(of sequence: Int64, in db: Database) throws -> OperationRelations? {
        let statement = try db.cachedStatement(
            sql: """
                SELECT (SELECT id FROM op AS next WHERE next.seq = op.superseded_by), (SELECT id FROM op AS old WHERE old.seq = op.fixes),
                    \(isAwaited), (SELECT seq FROM op AS head WHERE head.lane = op.lane AND head.upstream = op.upstream
                        AND head.place < op.place AND (head.principal IS op.principal OR head.state IN (\(movingStates)))
                        AND \(OperationState.isOpen("head")) ORDER BY head.place LIMIT 1)
                FROM op WHERE seq = ?
                """)
        guard let row = try Row.fetchOne(statement, arguments: [sequence]) else { return nil }
        var columns = RowReader(row)
        var standing = OperationRelations(
            supersededBy: try columns.nextIfAny(), fixes: try columns.nextIfAny(), isAwaited: try columns.next())
        if let head = try columns.nextIfAny(Int64.self) { standing.ahead = try links([head], in: db).first }
        let needs = try Int64.fetchAll(
            try db.cachedStatement(sql: "SELECT needs FROM op_dep WHERE seq = ? ORDER BY needs"), arguments: [sequence])
        if !needs.isEmpty { standing.dependsOn = try links(needs, in: db) }
        return standing
    }
}
