// Operations that would lose a prerequisite (docs/outbox.md#steering *discard of a create*, §1.9).
import GRDB
package import RockpoolCore

extension DataStore {
    /// Returns the open operations that need this one, directly or indirectly, in the order they were accepted: those with a dependency,
    /// and the later ones in the lane of an undelivered create.
    package func dependants(of operation: QueuedWrite) async throws -> [OperationLink] {
        try await reading { db in
            let sequences = try Self.dependants(of: operation.sequence, in: db)
            return try Self.links(sequences, in: db)
        }
    }

    /// Returns the sequences of the dependants, without `sequence`. A lane counts only if it belongs to the created entity, which means
    /// that its name contains the local id.
    static func dependants(of sequence: Int64, in db: Database) throws -> [Int64] {
        try Int64.fetchAll(
            db,
            sql: """
                WITH RECURSIVE tree (seq) AS (
                    SELECT ?1
                    UNION
                    SELECT later.seq FROM tree, op_dep, op AS later
                        WHERE op_dep.needs = tree.seq AND op_dep.kind <> 'collection' AND later.seq = op_dep.seq AND \(OperationState.isOpen("later"))
                    UNION
                    SELECT later.seq FROM tree, op AS made, op AS later
                        WHERE made.seq = tree.seq AND made.intent = 'create' AND made.state NOT IN ('delivered', 'inflight')
                            AND made.local_id IS NOT NULL AND instr(made.lane, made.local_id) > 0
                            AND later.lane = made.lane AND later.upstream = made.upstream AND later.place > made.place
                            AND \(OperationState.isOpen("later"))
                )
                SELECT seq FROM tree WHERE seq <> ?1 ORDER BY seq
                """, arguments: [sequence])
    }

    /// Returns links to those of `sequences` that still have a row.
    static func links(_ sequences: some Sequence<Int64>, in db: Database) throws -> [OperationLink] {
        let list = sequences.map { "\($0)" }.joined(separator: ", ")
        return try Row.fetchAll(db, sql: "SELECT \(linkColumns) FROM op WHERE seq IN (\(list)) ORDER BY seq").map { row in
            var columns = RowReader(row)
            return try link(&columns)
        }
    }

    static let linkColumns = "id, state, reason, method, origin || target"

    static func link(_ columns: inout RowReader) throws -> OperationLink {
        let id: String = try columns.next()
        return OperationLink(
            id: id, state: try columns.nextWord(), reason: try columns.word(), method: try columns.next(), url: try columns.next())
    }
}
