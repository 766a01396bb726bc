// The state of operations after a crash, and after the clock was set back (docs/outbox.md#wire-rule, docs/storage.md#clock).
import GRDB
import RockpoolCore

extension DataStore {
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
