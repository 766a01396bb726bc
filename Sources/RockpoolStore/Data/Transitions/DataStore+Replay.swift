// The lease of an operation: committed before its first byte is sent (docs/outbox.md#wire-rule).
import FoundationEssentials
import GRDB
import HTTPTypes
package import RockpoolCore

extension DataStore {
    /// Marks a pending operation as in flight. No byte of it may be sent before this returns.
    /// - Returns: nil when it is not pending (any more), or an operation that it must wait for is still open. The order within its
    ///   principal is enforced here as well; the order among principals is up to `ReplayMachine`.
    package func lease(id: String, now: Timestamp) async throws -> QueuedWrite? {
        try await recorded {
            try await queue.commit { db in
                guard let sequence = try Int64.fetchOne(db.cachedStatement(sql: Self.leasable), arguments: [id]) else { return nil }
                try Self.transition(
                    in: db, sequence: sequence, from: .pending, to: .inflight, reason: nil, update: Self.leased, values: [now.milliseconds],
                    now: now)
                try db.cachedStatement(sql: Self.attempting).execute(arguments: [sequence, now.milliseconds])
                guard var operation = try Self.fetch(in: db, where: "seq = ?", [sequence]) else { return nil }
                // If the base operation was delivered, its result is the base. If it was given up, the operation it was built on takes its
                // place.
                if let base = operation.baseSequence, let delivered = try Self.delivered(in: db, beneath: base) {
                    operation.baseETag = try Self.etag(in: db, of: delivered)
                }
                return operation
            }
        }
    }

    private static let leasable = """
        SELECT seq FROM op WHERE id = ? AND state = 'pending'
            AND NOT EXISTS (SELECT 1 FROM op AS earlier WHERE earlier.upstream = op.upstream AND earlier.lane = op.lane
                AND earlier.place < op.place AND earlier.principal IS op.principal AND earlier.state NOT IN (\(OperationRow.endedStates)))
            AND NOT EXISTS (SELECT 1 FROM op_dep JOIN op AS needed ON needed.seq = op_dep.needs
                WHERE op_dep.seq = op.seq AND needed.state NOT IN (\(OperationRow.endedStates)))
        """

    private static let leased = TransitionUpdate("first_sent_at = coalesce(first_sent_at, ?)")

    /// Neither this nor the transition uses RETURNING or takes its rows from the table that it writes: for either, SQLite would create a
    /// temporary table every time.
    private static let attempting = """
        INSERT INTO attempt (seq, rev, n, started) VALUES (
            ?1, (SELECT key_rev FROM op WHERE seq = ?1), (SELECT coalesce(max(n), 0) + 1 FROM attempt WHERE seq = ?1), ?2)
        """

    /// Returns the operation, or if it came to nothing, the delivered one that it was ultimately built on; nil when there is none.
    private static func delivered(in db: Database, beneath sequence: Int64) throws -> Int64? {
        try Int64.fetchOne(
            db.cachedStatement(
                sql: """
                    WITH RECURSIVE beneath (seq) AS (SELECT ? UNION
                        SELECT base_seq FROM beneath JOIN op USING (seq) WHERE state IN ('cancelled', 'superseded') AND base_seq IS NOT NULL)
                    SELECT seq FROM beneath JOIN op USING (seq) WHERE state = 'delivered'
                    """), arguments: [sequence])
    }

    /// Returns the strong ETag in an operation's response; nil when there was none.
    static func etag(in db: Database, of sequence: Int64) throws -> String? {
        let fields = try Data.fetchOne(
            db.cachedStatement(sql: "SELECT resp_headers FROM op WHERE seq = ? AND state = 'delivered'"), arguments: [sequence])
        return EntityTag.condition(fields.flatMap { FieldCodec.decode($0) }?[.eTag])
    }

    /// Returns the strong ETag in the response of a delivered operation; nil when there was none, or the operation is not delivered.
    package func etag(of sequence: Int64) async throws -> String? {
        try await reading { try Self.etag(in: $0, of: sequence) }
    }

    /// Makes every pending operation due at once.
    /// - Returns: the number of pending operations.
    package func makeAllDue(now: Timestamp) async throws -> Int {
        try await recorded {
            try await queue.commit { db in
                try db.cachedStatement(sql: "UPDATE op SET next_at = ? WHERE state = 'pending'").execute(arguments: [now.milliseconds])
                return db.changesCount
            }
        }
    }
}
