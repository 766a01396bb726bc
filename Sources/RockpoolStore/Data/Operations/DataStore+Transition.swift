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
}
