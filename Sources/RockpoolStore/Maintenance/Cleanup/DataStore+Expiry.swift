// Expiry of operations without an accepted credential: they are removed soon after they were refused, because their client may never return
// (docs/reference/behaviour.md#retention, `cleanup.unproved_after`).
import GRDB
import RockpoolCore

extension DataStore {
    /// Returns unproved operations that have waited since `moment` or longer, the newest first: refused and parked ones, and never sent
    /// ones stuck behind them. An operation that may have taken effect is left out, and so is one that a remaining operation waits for.
    static func expiring(in db: Database, since moment: Timestamp) throws -> [Expiring] {
        let rows = try Row.fetchAll(db.cachedStatement(sql: stuck), arguments: [moment.milliseconds])
        guard !rows.isEmpty else { return [] }
        let waiters = try db.cachedStatement(sql: waiting)
        var going: Set<Int64> = []
        var found: [Expiring] = []
        for row in rows {
            var columns = RowReader(row)
            let sequence: Int64 = try columns.next()
            guard try Int64.fetchAll(waiters, arguments: [sequence]).allSatisfy({ going.contains($0) }) else { continue }
            going.insert(sequence)
            found.append(
                Expiring(
                    sequence: sequence, bytes: try columns.next(), since: Timestamp(milliseconds: try columns.next()),
                    isAnnounced: try columns.next()))
        }
        return found
    }

    /// Selects the candidates. A parked operation keeps the time of parking in `next_at`. A pending operation is stuck when the one before
    /// it, of its own principal in its lane, waits for a credential or is stuck behind such a one, or when one that it needs is refused, parked
    /// or stuck itself. Every join starts at the left, which
    /// has no more rows than the share of the unproved can contain; another plan would take quadratic time.
    private static let stuck = """
        WITH RECURSIVE stuck (seq) AS (
            SELECT op.seq FROM unproved CROSS JOIN op ON op.seq = unproved.seq
                WHERE (op.state = 'dead' AND op.ended_at <= ?1 OR op.state = 'parked' AND op.next_at <= ?1)
                    AND NOT EXISTS (SELECT 1 FROM attempt WHERE attempt.seq = op.seq AND \(AttemptRecord.mayStillRun))
            UNION
            SELECT next.seq FROM stuck CROSS JOIN op ON op.seq = stuck.seq CROSS JOIN op AS next ON next.seq = (\(nextInLane))
                WHERE (\(isOfCredential("op")) OR op.state = 'pending' AND EXISTS (SELECT 1 FROM op AS first WHERE first.lane = op.lane
                    AND first.upstream = op.upstream AND first.principal = op.principal AND first.place < op.place
                    AND \(isOfCredential("first")) AND \(OperationState.isOpen("first")))) AND \(isUnsent)
            UNION
            SELECT next.seq FROM stuck CROSS JOIN op_dep ON op_dep.needs = stuck.seq CROSS JOIN op AS next ON next.seq = op_dep.seq
                WHERE op_dep.kind NOT IN ('group', 'collection') AND \(isUnsent)
        ), moments (seq, bytes, since, warned_at) AS (
            SELECT op.seq, length(headers) + coalesce(length(body), 0) + coalesce(length(resp_body), 0),
                CASE state WHEN 'dead' THEN ended_at WHEN 'parked' THEN next_at ELSE accepted_at END, warned_at
            FROM stuck JOIN op ON op.seq = stuck.seq
        )
        SELECT seq, bytes, since, coalesce(warned_at >= since, 0) FROM moments ORDER BY seq DESC
        """

    /// True for a row that waits for the credential of its principal, and holds all behind it.
    private static func isOfCredential(_ row: String) -> String {
        "\(row).state = 'parked' AND \(row).reason = 'auth' AND \(row).principal <> ''"
    }

    private static let isUnsent = """
        next.state = 'pending' AND next.first_sent_at IS NULL AND next.accepted_at <= ?1
            AND EXISTS (SELECT 1 FROM unproved WHERE unproved.seq = next.seq)
        """

    /// The next operation of the same principal in the lane of `op`.
    private static let nextInLane = """
        SELECT later.seq FROM op AS later WHERE later.upstream = op.upstream AND later.lane = op.lane AND later.place > op.place
            AND later.principal = op.principal AND \(OperationState.isOpen("later")) ORDER BY later.place LIMIT 1
        """

    /// The operations that wait for a stuck one. In its lane the next one of its principal represents all later ones; an unproved operation
    /// holds back no other principal's.
    private static let waiting = """
        SELECT later.seq FROM op JOIN op AS later ON later.seq = (\(nextInLane)) WHERE op.seq = ?1 AND later.state = 'pending'
        UNION ALL SELECT later.seq FROM op_dep JOIN op AS later ON later.seq = op_dep.seq
            WHERE op_dep.needs = ?1 AND (later.state = 'pending' OR op_dep.kind NOT IN ('group', 'collection'))
                AND \(OperationState.isOpen("later"))
        """

    // MARK: notice

    /// Returns the operations that must have been announced by now.
    static func announcedExpiring(in db: Database, retention: Retention, now: Timestamp) throws -> [Expiring] {
        try expiring(in: db, since: now - retention.unproved + retention.unprovedNotice)
    }

    /// Marks the operations among these that were not announced yet.
    /// - Returns: their ids.
    static func announceExpiring(in db: Database, retention: Retention, now: Timestamp) throws -> [String] {
        try announcedExpiring(in: db, retention: retention, now: now).filter { !$0.isAnnounced }.reversed().flatMap { one in
            try String.fetchAll(
                db, sql: "UPDATE op SET warned_at = ? WHERE seq = ? RETURNING id", arguments: [now.milliseconds, one.sequence])
        }
    }
}
