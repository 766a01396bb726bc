// The transition of an operation to another state: the only place that changes `op.state` (docs/outbox.md#states).
import GRDB
import RockpoolCore

/// The UPDATE of a kind of transition: the assignments that all transitions share, and those of its own.
struct TransitionUpdate: Sendable {
    let sql: String

    /// - Parameter assignments: those of its own, with a `?` for each value. SQLite takes the last of two assignments to one column, so
    ///   they replace shared ones. `?7` must stay before them: the number of a `?` follows the greatest one so far.
    init(_ assignments: String = "") {
        let own = assignments.isEmpty ? "" : ", \(assignments)"
        sql = """
            UPDATE op SET reason = ?2, ended_at = ?3, ended_tick = iif(?3 IS NULL, NULL, coalesce(?7, tick())), next_at = coalesce(?4, next_at),
                answered_attempts = CASE WHEN state = 'dead' AND ?6 = 'pending' THEN 0 ELSE answered_attempts END,
                probes = CASE WHEN ?5 THEN probes + 1 WHEN ?6 = 'uncertain' THEN probes ELSE 0 END,
                last_error = CASE ?6 WHEN 'delivered' THEN NULL ELSE last_error END, state = ?6\(own)
            WHERE seq = ?1
            """
    }

    /// Nothing but the shared assignments.
    static let plain = TransitionUpdate()
    /// Another operation takes its place: its sequence, or nil.
    static let replaced = TransitionUpdate("superseded_by = ?")
}

extension DataStore {
    /// Moves one operation to another state: its row, its open conflict and its line of the sync log.
    ///
    /// A retried dead operation has its answered attempts reset to 0. Probes are counted since the operation became uncertain.
    /// - Parameters:
    ///   - before: the state of the row.
    ///   - allowed: the states in which the operation may be; nil for all that permit the transition.
    ///   - detail: of the line in the log; nil for the reason.
    ///   - nextAttemptAt: nil keeps the present value; for `parked`, it sets the present time.
    ///   - tick: of its end, if it ends; nil for now.
    ///   - update: with `values` for its own assignments.
    /// - Throws: `.illegal` when the operation is in another state or the transition is not permitted.
    static func transition(
        in db: Database, sequence: Int64, from before: OperationState, to state: OperationState, reason: OperationReason?,
        allowed: Set<OperationState>? = nil, detail: String? = nil, nextAttemptAt: Timestamp? = nil, countsAsProbe: Bool = false,
        tick: Tick? = nil, update: TransitionUpdate = .plain, values: [DatabaseValue] = [], now: Timestamp
    ) throws {
        // The table in code gives a more specific error than the trigger.
        guard allowed?.contains(before) ?? true, state == before || OperationMachine.permits(from: before, to: state) else {
            throw DataStoreError.illegal(from: before, to: state)
        }
        // Dead operations have an end too: their retention is counted from it. A parked operation is never due, so the column keeps the time
        // of parking, from which the retention of an unproved one is counted (`Retention.unproved`).
        let endedAt = state.hasEnded || state == .dead ? now : nil
        let dueAt = nextAttemptAt ?? (state == .parked ? now : nil)
        let shared: [DatabaseValue] = [
            sequence.databaseValue, (reason?.rawValue).databaseValue, (endedAt?.milliseconds).databaseValue,
            (dueAt?.milliseconds).databaseValue, countsAsProbe.databaseValue, state.rawValue.databaseValue, (tick?.number).databaseValue,
        ]
        try db.cachedStatement(sql: update.sql).run(shared + values, in: db)
        if state == .superseded, reason == .squashed { try passOnNeeds(of: sequence, in: db) }
        if before == .conflicted, state != .conflicted { try closeConflict(of: sequence, by: reason, in: db, now: now) }
        // A lease is recorded by its attempt; a conflict found again is the same conflict.
        guard state != .inflight, state != .conflicted || before != .conflicted else { return }
        try log(in: db, sequence: sequence, state, detail: detail ?? reason?.rawValue, now: now)
    }

    /// Has the operations that need one which is never sent need what it waits for: of writes that wait for each other, only the last is needed.
    private static func passOnNeeds(of sequence: Int64, in db: Database) throws {
        try db.cachedStatement(
            sql: """
                INSERT INTO op_dep (seq, needs, kind) SELECT later.seq, own.needs, own.kind FROM op_dep AS later
                    JOIN op_dep AS own ON own.seq = later.needs JOIN op AS needed ON needed.seq = own.needs
                    WHERE later.needs = ? AND later.kind = 'explicit' AND own.kind = 'explicit' AND later.seq <> own.needs
                        AND \(OperationState.isOpen("needed")) ON CONFLICT DO NOTHING
                """
        ).execute(arguments: [sequence])
    }

    /// Closes the conflict of an operation that a command of a person has taken out of it; a decided one is closed already. For a
    /// discarded operation theirs stands; for a retried or edited one, the resolution stays unknown until its next attempt.
    private static func closeConflict(of sequence: Int64, by reason: OperationReason?, in db: Database, now: Timestamp) throws {
        let resolution: Conflict.Resolution? = reason == .discarded ? .theirs : nil
        try db.cachedStatement(
            sql: "UPDATE conflict SET closed = ?, resolution = ?, decided_by = 'person' WHERE seq = ? AND closed IS NULL"
        ).execute(arguments: [now.milliseconds, resolution?.rawValue, sequence])
    }

    // The part of an operation's row that its transitions need (docs/outbox.md#states).

    /// The columns needed to move an operation; no others, because they are read for every operation sent.
    struct Position {
        var sequence: Int64
        var state: OperationState
        var place: Int64
        var upstream: String
        var lane: String
        var localID: LocalID?
    }

    static func position(_ id: String, in db: Database) throws -> Position {
        let statement = try db.cachedStatement(sql: "SELECT seq, state, place, upstream, lane, local_id FROM op WHERE id = ?")
        guard let row = try Row.fetchOne(statement, arguments: [id]) else { throw DataStoreError.notFound(id: id) }
        var columns = RowReader(row)
        let sequence: Int64 = try columns.next()
        return Position(
            sequence: sequence, state: try columns.nextWord(), place: try columns.next(), upstream: try columns.next(),
            lane: try columns.next(), localID: try columns.nextIfAny(String.self).flatMap { LocalID($0) })
    }

    /// The position of an operation that was read before: only its state may have changed since.
    static func position(of known: QueuedWrite, in db: Database) throws -> Position {
        let statement = try db.cachedStatement(sql: "SELECT state FROM op WHERE seq = ?")
        guard let state = try statement.first([known.sequence.databaseValue], in: db, { try $0.nextWord(OperationState.self) }) else {
            throw DataStoreError.notFound(id: known.id)
        }
        return Position(
            sequence: known.sequence, state: state, place: known.place, upstream: known.upstream, lane: known.lane, localID: known.localID)
    }

    func known(_ id: String, in db: Database) throws -> QueuedWrite {
        guard let operation = try Self.fetch(in: db, where: "id = ?", [id]) else { throw DataStoreError.notFound(id: id) }
        return operation
    }

    // The state of operations after a crash, and after the clock was set back (docs/outbox.md#wire-rule, docs/storage.md#clock).

    /// Marks operations in flight at a crash as uncertain: they may or may not have arrived (docs/outbox.md#wire-rule).
    static func recover(in db: Database, now: Timestamp) throws {
        try setBack(in: db, now: now)
        try abandon(Int64.fetchAll(db, sql: "SELECT seq FROM op WHERE state = 'inflight' ORDER BY seq"), in: db, now: now)
    }

    /// Marks operations whose sender is gone as uncertain.
    static func abandon(_ sequences: [Int64], in db: Database, now: Timestamp) throws {
        for sequence in sequences {
            try db.execute(
                sql: "UPDATE attempt SET ended = ?, error = 'crashed', evidence = 'maybe' WHERE ended IS NULL AND seq = ?",
                arguments: [now.milliseconds, sequence])
            try transition(in: db, sequence: sequence, from: .inflight, to: .uncertain, reason: .crashed, now: now)
        }
    }

    /// Gives open operations of undeclared paths that an older version has queued the names of their lanes and entities that new ones have.
    static func renewLanes(in db: Database) throws {
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT seq, lane, entity, method = 'POST', upstream, principal FROM op
                WHERE \(OperationState.isOpen) AND entity_type IS NULL AND entity IS NOT NULL AND lane <> upstream
                    AND (lane <> upstream || ' ' || entity OR instr(entity, '%') > 0)
                """)
        for row in rows {
            var columns = RowReader(row)
            let sequence: Int64 = try columns.next()
            let renewed = Lane.renewed(
                try columns.next(), entity: try columns.next(), isPost: try columns.next(), upstream: try columns.next(),
                principal: try columns.principal())
            guard let renewed else { continue }
            try db.execute(
                sql: "UPDATE op SET lane = ?, entity = ? WHERE seq = ?", arguments: [renewed.lane, renewed.entity, sequence])
        }
    }

    /// Shifts due times when the clock of the last run was ahead of this one's, so that each remaining delay stays the same.
    private static func setBack(in db: Database, now: Timestamp) throws {
        guard let last = try Int64.fetchOne(db, sql: "SELECT at FROM sync_log ORDER BY n DESC LIMIT 1") else { return }
        let ahead = last - now.milliseconds
        guard ahead > clockTolerance.milliseconds else { return }
        try db.execute(
            sql: "UPDATE op SET next_at = next_at - ?1 WHERE state IN ('pending', 'uncertain') AND next_at > ?2",
            arguments: [ahead, now.milliseconds])
    }

    /// How far the clock may be set back without a correction.
    private static let clockTolerance = TimeSpan.seconds(2)
}
