// Equal requests in quick succession that are one write (docs/outbox.md#repeats).
import FoundationEssentials
import GRDB
import HTTPTypes
package import RockpoolCore

extension DataStore {
    /// Counts a request as a repeat of an equal write that waits.
    /// - Returns: that write; nil if there is none, or if the request is a write of its own.
    /// - Throws: as `append`.
    package func repeated(_ new: QueuedWriteDraft) async throws -> QueuedWrite? {
        guard new.isRepeatable, !empty.isKnown else { return nil }
        let now = clock()
        guard try await reading({ try Self.original(of: new, in: $0, now: now) }) != nil else { return nil }
        return try await translated {
            try await queue.commit(scope: .either, isRepeatable: true) { try Self.countRepeat(new, in: $0, now: now) }
        }
    }

    /// Makes one of the counted repeats of a write a write of its own, at the end of its lane.
    /// - Parameters:
    ///   - new: a copy of the write with an id and a key of its own.
    ///   - id: of the write.
    /// - Returns: nil if no repeat is counted.
    /// - Throws: as `append`, and `.notFound`.
    package func separate(_ new: QueuedWriteDraft, from id: String) async throws -> QueuedWrite? {
        let now = clock()
        let cost = Cost.row(new.rowLength)
        defer { empty.noteTaken() }
        let made = try await translated {
            try await queue.commit(weight: cost / 2) { db -> QueuedWrite? in
                guard let old = try Self.fetch(in: db, where: "id = ?", [id]) else { throw DataStoreError.notFound(id: id) }
                guard var mark = RepeatMark(of: old.request.fields), mark.count > 0 else { return nil }
                try self.checkRoom(in: db, for: cost)
                try self.attachBlob(of: new.body, in: db)
                mark.count -= 1
                try Self.set(mark, of: old.sequence, old.request.fields, in: db)
                try new.insert(in: db, base: nil, now: now)
                let sequence = db.lastInsertedRowID
                _ = try new.insertEdges(in: db, sequence: sequence)
                for statement in [
                    "UPDATE op SET (group_name, no_merge) = (SELECT group_name, no_merge FROM op WHERE seq = ?2) WHERE seq = ?1",
                    """
                    INSERT INTO op_dep (seq, needs, kind) SELECT ?1, needs, kind FROM op_dep WHERE seq = ?2 AND kind IN ('explicit', 'id')
                        ON CONFLICT DO NOTHING
                    """,
                    "INSERT OR IGNORE INTO op_ref (seq, local_id, place) SELECT ?1, local_id, place FROM op_ref WHERE seq = ?2",
                    "INSERT INTO unproved (seq, principal) SELECT ?1, principal FROM unproved WHERE seq = ?2",
                ] {
                    try db.execute(sql: statement, arguments: [sequence, old.sequence])
                }
                try Self.log(in: db, sequence: sequence, .pending, detail: "a repeat of \(id)", now: now)
                return try Self.fetch(in: db, where: "seq = ?", [sequence])
            }
        }
        if let made {
            if case .blob(let sha256, _) = new.body { releaseBlob(sha256) }
            if let id = made.localID { localIDs.note(id, upstream: made.upstream, collection: made.collection) }
        }
        return made
    }

    /// Counts a request as a repeat, if an equal write waits.
    static func countRepeat(_ new: QueuedWriteDraft, in db: Database, now: Timestamp) throws -> QueuedWrite? {
        guard new.isRepeatable, let sequence = try original(of: new, in: db, now: now),
            let old = try fetch(in: db, where: "seq = ?", [sequence]), var mark = RepeatMark(of: old.request.fields)
        else { return nil }
        mark.count += 1
        try set(mark, of: sequence, old.request.fields, in: db)
        return try fetch(in: db, where: "seq = ?", [sequence])
    }

    private static func set(_ mark: RepeatMark, of sequence: Int64, _ fields: HTTPFields, in db: Database) throws {
        var fields = fields
        fields[.rockpoolRepeat] = mark.text
        try db.cachedStatement(sql: "UPDATE op SET headers = ? WHERE seq = ?")
            .run([FieldCodec.encode(fields).databaseValue, sequence.databaseValue], in: db)
    }

    /// The newest equal write that a request repeats: of the same client, answered 202 within the last seconds, with the same wishes, not
    /// ended or refused, and with no later write of the client behind it, because the client has gone on since.
    private static func original(of new: QueuedWriteDraft, in db: Database, now: Timestamp) throws -> Int64? {
        let equal = try db.cachedStatement(sql: newestEqual).all(
            [
                new.fingerprint.data.databaseValue, (new.principal ?? "").databaseValue, new.upstream.databaseValue,
                (now - RepeatMark.time).milliseconds.databaseValue,
            ], in: db
        ) { columns in
            Original(
                sequence: try columns.next(), place: try columns.next(), lane: try columns.next(), fields: try columns.fields(),
                group: try columns.nextIfAny(), priority: try columns.next(), noMerge: try columns.next(), expires: try columns.next(),
                needs: try columns.nextIfAny())
        }
        guard let original = equal.first(where: { $0.isSame(as: new) }), RepeatMark(of: original.fields) != nil else { return nil }
        return try isLast(original, of: new, in: db) ? original.sequence : nil
    }

    private struct Original {
        var sequence: Int64
        var place: Int64
        var lane: String
        var fields: HTTPFields
        var group: String?
        var priority: Int
        var noMerge: Bool
        var expires: Bool
        /// The ids of the operations that the client has named, separated by commas.
        var needs: String?

        /// True for the same fields and wishes of the same client.
        func isSame(as new: QueuedWriteDraft) -> Bool {
            group == new.group && priority == new.priority && noMerge == new.noMerge && expires == (new.expiresAt != nil)
                && Set((needs ?? "").split(separator: ",").map(String.init)) == Set(new.dependsOn)
                && RepeatMark.areEqual(fields, new.request.fields)
        }
    }

    /// True if nothing of the same client is behind a write in its lane. Clients without a credential are told apart by address.
    private static func isLast(_ equal: Original, of new: QueuedWriteDraft, in db: Database) throws -> Bool {
        let later = try db.cachedStatement(sql: behind).all(
            [equal.lane, new.upstream, new.principal ?? ""].map(\.databaseValue) + [equal.place.databaseValue], in: db
        ) { try $0.fields() }
        guard new.principal == nil else { return later.isEmpty }
        return later.count < limit && later.allSatisfy { $0[.rockpoolClient] != new.request.fields[.rockpoolClient] }
    }

    private static let newestEqual = """
        SELECT seq, place, lane, headers, group_name, priority, no_merge, expires_at IS NOT NULL,
            (SELECT group_concat(needed.id) FROM op_dep JOIN op AS needed ON needed.seq = op_dep.needs
                WHERE op_dep.seq = op.seq AND op_dep.kind = 'explicit')
        FROM op WHERE fingerprint = (SELECT sealed_name(?1)) AND method = 'POST' AND \(OperationState.isOpen) AND state <> 'dead'
            AND principal = ?2 AND upstream = ?3 AND accepted_at > ?4
        ORDER BY seq DESC LIMIT \(limit)
        """

    /// The most writes that are compared: one client rarely has as many in its lane within the time of a repeat.
    private static let limit = 64

    /// The unary `+` keeps SQLite to `op_lane`, where the place is a bound of the search.
    private static let behind = """
        SELECT headers FROM op WHERE lane = ?1 AND +upstream = ?2 AND +principal = ?3 AND place > ?4 AND \(OperationState.isOpen)
        ORDER BY place LIMIT \(limit)
        """
}

extension QueuedWriteDraft {
    /// True if it may be the same write as an earlier one: nothing of it was sent, and its client has named no key.
    fileprivate var isRepeatable: Bool { mayRepeat && !keyIsClients && firstSentAt == nil && request.method == .post }
}
