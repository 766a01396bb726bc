// The dependencies of a new operation: creates of the local ids it contains, the write it builds on, and those named by the client
// (docs/outbox.md#dependencies).
import GRDB
import HTTPTypes
import RockpoolCore

extension QueuedWriteDraft {
    /// Returns the earlier operation that this one builds on: the one named by its condition, or else the last of the same principal on its
    /// entity (including its creation) that is newer than the client's copy, because the client has not seen writes of other principals.
    /// Nil when that copy is the newest state.
    func baseSequence(in db: Database) throws -> Int64? {
        if let named = conditionedOn.max() { return named }
        guard takesBase, let entity else { return nil }
        return try Int64.fetchOne(
            db.cachedStatement(
                sql: """
                    SELECT max(seq) FROM (
                        SELECT seq, principal, state, ended_at FROM op WHERE upstream = ?1 AND entity = ?2
                        UNION ALL SELECT seq, principal, state, ended_at FROM op
                            WHERE seq = (SELECT created_by FROM id_map WHERE local_id = ?3)
                    ) WHERE principal = ?4 AND (state NOT IN (\(OperationRow.endedStates)) OR state = 'delivered' AND ended_at >= ?5)
                    """),
            arguments: [upstream, entity, entityID ?? "", principal ?? "", (baseFetchedAt ?? .distantPast).milliseconds])
    }

    /// Inserts its local ids and its dependencies. `sequence` is its own.
    /// - Returns: the operations it needs.
    /// - Throws: `DataStoreError.unknownDependency` for an operation that does not exist.
    func insertEdges(in db: Database, sequence: Int64) throws -> Set<Int64> {
        var needs: Set<Int64> = []
        if let localID {
            try db.cachedStatement(sql: "INSERT INTO id_map (local_id, upstream, entity_type, created_by) VALUES (?, ?, ?, ?)")
                .execute(arguments: [localID.text, upstream, collection, sequence])
        }
        for reference in references {
            try db.execute(
                sql: "INSERT OR IGNORE INTO op_ref (seq, local_id, place) VALUES (?, ?, ?)",
                arguments: [sequence, reference.id.text, reference.place.text])
            let creator = try Int64.fetchOne(
                db, sql: "SELECT created_by FROM id_map WHERE local_id = ? AND server_id IS NULL", arguments: [reference.id.text])
            if let creator {
                needs.insert(try insertEdge(Dependency(needs: creator, kind: kind(of: reference)), in: db, sequence: sequence))
            }
        }
        for earlier in conditionedOn { needs.insert(try insertEdge(Dependency(needs: earlier, kind: .etag), in: db, sequence: sequence)) }
        for id in dependsOn {
            guard let earlier = try Int64.fetchOne(db, sql: "SELECT seq FROM op WHERE id = ?", arguments: [id]) else {
                throw DataStoreError.unknownDependency(id: id)
            }
            needs.insert(try insertEdge(Dependency(needs: earlier, kind: .explicit), in: db, sequence: sequence))
        }
        if let group {
            let earlier = try Int64.fetchOne(
                db,
                sql: """
                    SELECT max(seq) FROM op WHERE upstream = ? AND group_name = ? AND principal = ? AND seq < ?
                        AND state NOT IN (\(OperationRow.endedStates))
                    """, arguments: [upstream, group, principal ?? "", sequence])
            if let earlier { needs.insert(try insertEdge(Dependency(needs: earlier, kind: .group), in: db, sequence: sequence)) }
        }
        return needs.subtracting([sequence])
    }

    /// Returns the kind of dependency: a local id in the path belongs to the entity itself or to a parent of it.
    private func kind(of reference: LocalIDReference) -> DependencyKind {
        if case .path = reference.place, reference.id.text != entityID { .parent } else { .id }
    }

    private func insertEdge(_ edge: Dependency, in db: Database, sequence: Int64) throws -> Int64 {
        guard edge.needs != sequence else { return sequence }
        try db.cachedStatement(sql: "INSERT OR IGNORE INTO op_dep (seq, needs, kind) VALUES (?, ?, ?)")
            .execute(arguments: [sequence, edge.needs, edge.kind.rawValue])
        return edge.needs
    }
}
