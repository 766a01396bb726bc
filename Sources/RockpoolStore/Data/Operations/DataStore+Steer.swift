// Commands of a person on the outbox, each a single transaction with all its consequences (docs/outbox.md#steering *user*).
import GRDB
package import RockpoolCore

extension DataStore {
    /// Ends an operation that was not delivered, and with `withTree` its dependants too.
    /// - Parameters:
    ///   - from: the states in which the operation may be.
    ///   - withTree: false refuses when another operation needs it.
    /// - Returns: all ended operations, the named one first.
    /// - Throws: `.needed` with its dependants, `.illegal` when one of them is in another state, `.notFound`, `.unavailable`. Nothing has
    ///   changed then.
    package func giveUp(
        id: String, reason: OperationReason, from: Set<OperationState>, withTree: Bool, now: Timestamp
    ) async throws -> [QueuedWrite] {
        try await recorded {
            try await queue.commit { db in
                guard let operation = try Self.fetch(in: db, where: "id = ?", [id]) else { throw DataStoreError.notFound(id: id) }
                let dependants = try Self.dependants(of: operation.sequence, in: db)
                guard withTree || dependants.isEmpty else { throw DataStoreError.needed(by: try Self.links(dependants, in: db)) }
                let first = try Self.move(operation.sequence, to: .cancelled, reason: reason, from: from, in: db, now: now)
                return try [first]
                    + dependants.map {
                        try Self.move($0, to: .cancelled, reason: .discarded, from: OperationSteering.discard.allowedFrom, in: db, now: now)
                    }
            }
        }
    }

    /// Makes an operation due now. A refused one gets a new key.
    /// - Parameter from: the states in which it may be.
    /// - Throws: `.illegal`, `.notFound`, `.unavailable`; nothing has changed then.
    package func retry(id: String, from: Set<OperationState>, now: Timestamp) async throws -> QueuedWrite {
        try await recorded {
            try await queue.commit { db in
                guard let operation = try Self.fetch(in: db, where: "id = ?", [id]) else { throw DataStoreError.notFound(id: id) }
                return try Self.move(operation.sequence, to: .pending, reason: nil, from: from, in: db, now: now)
            }
        }
    }

    /// Makes the parked, dead and conflicted operations of a selection due now, and of a whole lane also the pending ones. An uncertain one
    /// may have taken effect and needs a decision of its own, so it is left alone.
    /// - Parameter kept: the sequences of those that keep their time.
    /// - Returns: the ids of the retried and of the uncertain operations, in their order within the lanes.
    package func retry(
        _ selection: RetrySelection, except kept: Set<Int64> = [], now: Timestamp
    ) async throws -> (retried: [String], uncertain: [String]) {
        try await recorded {
            try await queue.commit { db in
                let rows = try Row.fetchAll(
                    db,
                    sql: """
                        SELECT seq, id, state FROM op WHERE (?1 IS NULL OR lane = ?1) AND (?2 IS NULL OR upstream = ?2)
                            AND (?3 IS NULL OR reason = ?3) AND (?4 IS NULL
                                OR coalesce(ended_at, (SELECT max(ended) FROM attempt WHERE attempt.seq = op.seq), accepted_at) >= ?4)
                            AND \(OperationState.isOpen) ORDER BY place, seq
                        """,
                    arguments: [selection.lane, selection.upstream, selection.reason?.rawValue, selection.since?.milliseconds])
                var (retried, uncertain): ([String], [String]) = ([], [])
                for row in rows {
                    var columns = RowReader(row)
                    let (sequence, id): (Int64, String) = (try columns.next(), try columns.next())
                    switch try columns.word(OperationState.self) {
                    case .pending where kept.contains(sequence) || !selection.isWholeLane: break
                    case .pending, .parked, .dead, .conflicted:
                        _ = try Self.move(sequence, to: .pending, reason: nil, from: OperationSteering.retry.allowedFrom, in: db, now: now)
                        retried.append(id)
                    case .uncertain: uncertain.append(id)
                    default: break
                    }
                }
                return (retried, uncertain)
            }
        }
    }

    /// Moves one row to another state; a retried one is due now.
    private static func move(
        _ sequence: Int64, to state: OperationState, reason: OperationReason?, from: Set<OperationState>, in db: Database,
        now: Timestamp
    ) throws -> QueuedWrite {
        guard let before = try fetch(in: db, where: "seq = ?", [sequence]) else { throw DataStoreError.notFound(id: "\(sequence)") }
        let isRenewed = state == .pending && OperationSteering.renewsKey(of: before)
        try transition(
            in: db, sequence: sequence, from: before.state, to: state, reason: reason, allowed: from,
            nextAttemptAt: state == .pending ? now : nil, update: isRenewed ? renewed : .plain,
            values: isRenewed ? [newKey(now).databaseValue] : [], now: now)
        return try fetch(in: db, where: "seq = ?", [sequence]) ?? before
    }

    /// A new key, under which nothing was sent yet. The client's own key still recognises its repeated requests.
    private static let renewed = TransitionUpdate(
        "idem_key = ?, key_origin = 'proxy', key_rev = key_rev + 1, first_sent_at = NULL, sent_tick = NULL")

    private static func newKey(_ now: Timestamp) -> String {
        UUIDv7.make(now: now, random: (.random(in: 0 ... .max), .random(in: 0 ... .max)))
    }

    // MARK: - Edits
    // The edit of a queued operation: a new one takes its place, in one transaction (docs/outbox.md#steering).

    /// Puts an edited operation in the place of another: in its lane, before the later ones, with its dependencies and dependants.
    ///
    /// The old operation ends as `superseded`, reason `edited`, and keeps its client key, so that a repeated request is still recognised.
    /// `new` supplies request, body, entity and idempotency key; place, lane, priority, principal, expiry and base are those of the old
    /// one.
    /// - Parameter from: the states in which the old operation may be.
    /// - Returns: the new operation.
    /// - Throws: `.illegal`, `.notFound`, `.full`, `.unavailable`; nothing has changed then.
    package func replace(id: String, by new: QueuedWriteDraft, from: Set<OperationState>, now: Timestamp) async throws -> QueuedWrite {
        let cost = Cost.row(new.rowLength)
        let edited = try await translated {
            try await queue.commit(weight: cost / 2) { db in
                guard let old = try Self.fetch(in: db, where: "id = ?", [id]) else { throw DataStoreError.notFound(id: id) }
                try self.checkRoom(in: db, for: cost)
                try self.attachBlob(of: new.body, in: db)
                try new.insert(in: db, base: nil, now: now)
                let sequence = db.lastInsertedRowID
                try Self.transition(
                    in: db, sequence: old.sequence, from: old.state, to: .superseded, reason: .edited, allowed: from, update: .replaced,
                    values: [sequence.databaseValue], now: now)
                try Self.inherit(sequence, from: old.sequence, in: db)
                try Self.log(in: db, sequence: sequence, .pending, detail: "edited: \(old.id)", now: now)
                return try Self.fetch(in: db, where: "seq = ?", [sequence])
            }
        }
        if case .blob(let sha256, _) = new.body { releaseBlob(sha256) }
        return try edited ?? { throw DataStoreError.notFound(id: new.id) }()
    }

    private static func inherit(_ sequence: Int64, from old: Int64, in db: Database) throws {
        for statement in [
            OperationColumn.inherit,
            "UPDATE op SET base_seq = ?1 WHERE base_seq = ?2 AND seq <> ?1",
            "INSERT INTO op_dep (seq, needs, kind) SELECT ?1, needs, kind FROM op_dep WHERE seq = ?2 ON CONFLICT DO NOTHING",
            "INSERT INTO op_dep (seq, needs, kind) SELECT seq, ?1, kind FROM op_dep WHERE needs = ?2 ON CONFLICT DO NOTHING",
            "UPDATE id_map SET created_by = ?1 WHERE created_by = ?2",
            "INSERT INTO unproved (seq, principal) SELECT ?1, principal FROM unproved WHERE seq = ?2",
        ] {
            try db.execute(sql: statement, arguments: [sequence, old])
        }
        try db.execute(sql: "DELETE FROM op_dep WHERE needs = ?", arguments: [old])
        // The new body may no longer contain a local id: only references that are still there are copied.
        try db.execute(
            sql: """
                INSERT INTO op_ref (seq, local_id, place) SELECT ?1, op_ref.local_id, op_ref.place FROM op_ref JOIN op ON op.seq = ?1
                    WHERE op_ref.seq = ?2 AND (instr(op.target, op_ref.local_id) > 0 OR instr(op.headers, CAST(op_ref.local_id AS BLOB)) > 0
                        OR op.blob_sha IS NOT NULL OR instr(op.body, CAST(op_ref.local_id AS BLOB)) > 0) ON CONFLICT DO NOTHING
                """, arguments: [sequence, old])
    }

    // MARK: - Dependants
    // Operations that would lose a prerequisite (docs/outbox.md#steering *discard of a create*, §1.9).

    /// Returns the open operations that need this one, directly or indirectly, in the order they were accepted.
    package func dependants(of operation: QueuedWrite) async throws -> [OperationLink] {
        try await reading { db in
            let sequences = try Self.dependants(of: operation.sequence, in: db)
            return try Self.links(sequences, in: db)
        }
    }

    /// Returns the sequences of the dependants, without `sequence`.
    static func dependants(of sequence: Int64, in db: Database) throws -> [Int64] {
        try Int64.fetchAll(
            db,
            sql: """
                WITH RECURSIVE tree (seq) AS (
                    SELECT ?1
                    UNION
                    SELECT later.seq FROM tree, op_dep, op AS later
                        WHERE op_dep.needs = tree.seq AND op_dep.kind <> 'collection' AND later.seq = op_dep.seq AND \(OperationState.isOpen("later"))
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

/// Operations that a person retries together. At least one member is set.
package struct RetrySelection: Hashable, Sendable {
    package var lane: String?
    /// Nil selects every upstream.
    package var upstream: String?
    package var reason: OperationReason?
    /// The earliest time of the refusal.
    package var since: Timestamp?

    package init(lane: String? = nil, upstream: String? = nil, reason: OperationReason? = nil, since: Timestamp? = nil) {
        (self.lane, self.upstream, self.reason, self.since) = (lane, upstream, reason, since)
    }

    /// True if it selects everything of a lane, not only what was refused.
    package var isWholeLane: Bool { lane != nil && reason == nil && since == nil }
}
