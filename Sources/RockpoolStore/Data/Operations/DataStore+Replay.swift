// An attempt of an operation: its lease, committed before its first byte is sent, and its outcome (docs/outbox.md#wire-rule,
// docs/outbox.md#answers).
import FoundationEssentials
import GRDB
import HTTPTypes
package import RockpoolCore

extension DataStore {
    /// Marks a pending operation as in flight. No byte of it may be sent before this returns.
    /// - Returns: nil when it is not pending (any more), an operation that it needs is still open, or one of its principal before it in its lane
    ///   is in flight, or pending where nothing has left the order. Otherwise the order is up to `ReplayMachine`, which may not have heard of a
    ///   change yet.
    package func lease(id: String, now: Timestamp) async throws -> QueuedWrite? {
        try await recorded {
            try await queue.commit(isRepeatable: true) { db in
                let statement = try db.cachedStatement(sql: Self.leasable)
                guard var operation = try statement.first([id.databaseValue], in: db, { try OperationRow.operation(from: &$0) }),
                    try self.replica?.claim(operation.sequence, in: db) ?? true
                else { return nil }
                let (sequence, moment) = (operation.sequence.databaseValue, now.milliseconds.databaseValue)
                let tick = self.ticks.next()
                try Self.transition(
                    in: db, sequence: operation.sequence, from: .pending, to: .inflight, reason: nil, update: Self.leased,
                    values: [moment, tick.number.databaseValue], now: now)
                try db.cachedStatement(sql: Self.attempting).run([sequence, moment], in: db)
                operation.lease(at: Moment(at: now, tick: tick))
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
        SELECT \(OperationRow.columns) FROM op WHERE id = ? AND state = 'pending'
            AND NOT EXISTS (SELECT 1 FROM op AS earlier WHERE \(isEarlier("earlier", than: "op")) AND earlier.state = 'inflight'
                AND NOT (op.principal = '' AND 'POST' IN (op.method, earlier.method)))
            AND NOT EXISTS (SELECT 1 FROM op AS earlier WHERE \(isEarlier("earlier", than: "op")) AND earlier.state = 'pending'
                AND op.principal <> '' AND \(hasNoNeeds("earlier"))
                AND NOT EXISTS (SELECT 1 FROM op AS first WHERE \(isEarlier("first", than: "earlier"))
                    AND NOT (first.state IN ('pending', 'inflight') AND \(hasNoNeeds("first")))))
            AND NOT EXISTS (SELECT 1 FROM op_dep JOIN op AS needed ON needed.seq = op_dep.needs
                WHERE op_dep.seq = op.seq AND op_dep.kind NOT IN ('group', 'collection') AND \(OperationState.isOpen("needed")))
        """

    /// SQL that is true for an open operation of the same principal before another in its lane.
    private static func isEarlier(_ earlier: String, than other: String) -> String {
        """
        \(earlier).upstream = \(other).upstream AND \(earlier).lane = \(other).lane AND \(earlier).principal = \(other).principal
            AND \(earlier).place < \(other).place AND \(OperationState.isOpen(earlier))
        """
    }

    private static func hasNoNeeds(_ row: String) -> String {
        "NOT EXISTS (SELECT 1 FROM op_dep JOIN op AS needed ON needed.seq = op_dep.needs "
            + "WHERE op_dep.seq = \(row).seq AND \(OperationState.isOpen("needed")))"
    }

    private static let leased = TransitionUpdate("first_sent_at = coalesce(first_sent_at, ?), sent_tick = coalesce(sent_tick, ?)")

    /// Neither this nor the transition uses RETURNING or takes its rows from the table that it writes: for either, SQLite would create a
    /// temporary table every time.
    private static let attempting = """
        INSERT INTO attempt (seq, rev, n, started) VALUES (
            ?1, (SELECT key_rev FROM op WHERE seq = ?1), (SELECT coalesce(max(n), 0) + 1 FROM attempt WHERE seq = ?1), ?2)
        """

    /// Returns the operation, or if it came to nothing or was refused, the delivered one that it was ultimately built on; nil when there is none.
    private static func delivered(in db: Database, beneath sequence: Int64) throws -> Int64? {
        try Int64.fetchOne(
            db.cachedStatement(
                sql: """
                    WITH RECURSIVE beneath (seq) AS (SELECT ? UNION
                        SELECT base_seq FROM beneath JOIN op USING (seq) WHERE state IN ('cancelled', 'superseded', 'dead') AND base_seq IS NOT NULL)
                    SELECT seq FROM beneath JOIN op USING (seq) WHERE state = 'delivered'
                    """), arguments: [sequence])
    }

    /// Returns the strong ETag in an operation's response; nil when there was none.
    static func etag(in db: Database, of sequence: Int64) throws -> String? {
        let sql = "SELECT unsealed_fields(resp_headers) FROM op WHERE seq = ? AND state = 'delivered'"
        let fields = try Data.fetchOne(db.cachedStatement(sql: sql), arguments: [sequence])
        return EntityTag.condition(in: fields.flatMap { FieldCodec.decode($0) }?[.eTag])
    }

    /// Returns the strong ETag in the response of a delivered operation; nil when there was none, or the operation is not delivered.
    package func etag(of sequence: Int64) async throws -> String? {
        try await reading { try Self.etag(in: $0, of: sequence) }
    }

    /// Returns true if what was sent for an operation included another's changes, because a conflict of it was resolved by merging.
    package func isMerged(_ sequence: Int64) async throws -> Bool {
        try await reading { try Self.isMerged(sequence, in: $0) }
    }

    static func isMerged(_ sequence: Int64, in db: Database) throws -> Bool {
        try Bool.fetchOne(
            db.cachedStatement(
                sql: "SELECT EXISTS (SELECT 1 FROM conflict WHERE seq = ? AND resolution IN ('merged', 'theirs', 'both'))"),
            arguments: [sequence]) ?? false
    }

    /// Makes every pending operation due at once.
    /// - Parameter kept: the sequences of those that keep their time.
    /// - Returns: the number of operations made due.
    package func makeAllDue(except kept: [Int64] = [], now: Timestamp) async throws -> Int {
        let list = "[\(kept.map(String.init).joined(separator: ","))]"
        return try await recorded {
            try await queue.commit { db in
                try db.cachedStatement(
                    sql: "UPDATE op SET next_at = ? WHERE state = 'pending' AND seq NOT IN (SELECT value FROM json_each(?))"
                ).execute(arguments: [now.milliseconds, list])
                return db.changesCount
            }
        }
    }

    // MARK: - Outcomes

    /// Records the outcome of an operation in flight.
    /// - Parameter leased: the operation as `lease` has returned it: then a delivery reads no row back. Nil if it is not at hand.
    /// - Throws: `.illegal` when it is not in flight or the disposition's transition is not permitted, `.notFound`, `.unavailable`.
    package func finish(
        id: String, disposition: Disposition, result: OperationResult?, attempt: AttemptRecord, leased: QueuedWrite? = nil, now: Timestamp
    ) async throws -> QueuedWrite {
        // The body of a response is kept only if there is space; the outcome must be recorded in any case.
        let ledger = footprint.ledger
        let isRoomy = ledger.used + ledger.reserved + Int64(result?.body.count ?? 0) * 2 < ledger.limit / 2
        let result = isRoomy ? result : result.map { OperationResult(head: $0.head, body: []) }
        return try await recorded {
            try await queue.commit(weight: Int64(result?.body.count ?? 0) + .kib(4), isRepeatable: true) { db in
                let before = try leased.map { try Self.position(of: $0, in: db) } ?? Self.position(id, in: db)
                try self.checkOwnership(of: before, in: db)
                let tick = self.ticks.next()
                try Self.record(disposition, result, on: before, in: db, tick: tick, now: now)
                try attempt.end(in: db, of: before.sequence, now: now)
                try self.map(before, disposition: disposition, in: db, now: now)
                try Self.hold(before, disposition: disposition, in: db)
                FailPoint.beforeOutcomeCommit.reached()
                return try leased?.delivered(by: disposition, result, attempt, at: Moment(at: now, tick: tick)) ?? self.known(id, in: db)
            }
        }
    }

    /// - Throws: `.illegal` when another node has the operation in flight, or this one was fenced since it leased it.
    private func checkOwnership(of operation: Position, in db: Database) throws {
        guard let replica, operation.state == .inflight, try !replica.owns(operation.sequence, in: db) else { return }
        throw DataStoreError.illegal(from: .inflight, to: .uncertain)
    }

    /// Stores the server's id of a created entity in the transaction that records the delivery, so that no crash can separate them.
    ///
    /// `localIDs` knows it before the commit: a read that finds the create delivered finds the writes to its item under the same id. What the
    /// upstream has answered stays true if the commit fails.
    private func map(_ operation: Position, disposition: Disposition, in db: Database, now: Timestamp) throws {
        guard let id = operation.localID, let mapping = disposition.mapping, disposition.state == .delivered else { return }
        let sql = "UPDATE id_map SET server_id = ?, is_number = ?, server_url = sealed_url(?), mapped_at = ? WHERE local_id = ?"
        try db.cachedStatement(sql: sql)
            .run(
                [
                    mapping.id.text.databaseValue, mapping.id.isNumber.databaseValue, mapping.url.databaseValue,
                    now.milliseconds.databaseValue, id.text.databaseValue,
                ], in: db)
        localIDs.note(id, became: mapping)
    }

    /// Delays the later operations in the lane while an earlier attempt may still run (docs/outbox.md#lane-holds).
    private static func hold(_ operation: Position, disposition: Disposition, in db: Database) throws {
        guard let moment = disposition.holdsLaneUntil else { return }
        try db.cachedStatement(
            sql: """
                UPDATE op SET next_at = max(next_at, ?) WHERE upstream = ? AND lane = ? AND place > ? AND state = 'pending'
                    AND principal IS (SELECT principal FROM op WHERE seq = ?)
                """
        ).execute(arguments: [moment.milliseconds, operation.upstream, operation.lane, operation.place, operation.sequence])
    }

    /// Moves an operation that is not in flight: retry, discard, cancel, park. A retried dead operation has its answered attempts reset to
    /// 0.
    /// - Parameters:
    ///   - nextAttemptAt: nil keeps the present value.
    ///   - from: the states in which the operation may be.
    /// - Throws: `.illegal` when it is in another state or the transition is not permitted, `.notFound`, `.unavailable`.
    package func transition(
        id: String, to state: OperationState, reason: OperationReason?, nextAttemptAt: Timestamp? = nil, from: Set<OperationState>,
        now: Timestamp
    ) async throws -> QueuedWrite {
        try await move(id: id, by: Disposition(state: state, reason: reason, nextAttemptAt: nextAttemptAt), from: from, now: now)
    }

    /// Moves an operation by a whole disposition: after a probe of the upstream, an expiry, or a new credential.
    package func move(
        id: String, by disposition: Disposition, from: Set<OperationState>, now: Timestamp
    ) async throws -> QueuedWrite {
        try await recorded {
            try await queue.commit { db in
                let before = try Self.position(id, in: db)
                try self.checkOwnership(of: before, in: db)
                try Self.transition(
                    in: db, sequence: before.sequence, from: before.state, to: disposition.state, reason: disposition.reason, allowed: from,
                    detail: disposition.detail, nextAttemptAt: disposition.nextAttemptAt, countsAsProbe: disposition.countsAsProbe, now: now
                )
                if before.state == .inflight { try AttemptRecord(sent: .maybe).end(in: db, of: before.sequence, now: now) }
                try self.map(before, disposition: disposition, in: db, now: now)
                return try self.known(id, in: db)
            }
        }
    }

    private static let answered = TransitionUpdate(
        """
        answered_attempts = answered_attempts + ?, net_attempts = net_attempts + ?, last_error = ?, resp_status = ?,
            resp_headers = sealed_fields(?), resp_body = sealed(?)
        """)

    private static func record(
        _ disposition: Disposition, _ result: OperationResult?, on operation: Position, in db: Database, tick: Tick, now: Timestamp
    ) throws {
        let isAnswered = disposition.countsAsAnswered
        try transition(
            in: db, sequence: operation.sequence, from: operation.state, to: disposition.state, reason: disposition.reason,
            allowed: [.inflight],
            detail: disposition.detail, nextAttemptAt: disposition.nextAttemptAt, tick: tick, update: answered,
            values: [
                (isAnswered ? 1 : 0).databaseValue, (isAnswered ? 0 : 1).databaseValue,
                (disposition.state == .delivered ? nil : disposition.detail).databaseValue, (result?.head.status).databaseValue,
                result.map { FieldCodec.encode($0.head.fields) }.databaseValue,
                result.map { Array($0.body.prefix(inlineLimit)).data }.databaseValue,
            ], now: now)
    }

    // MARK: - Bases
    // The bases of the writes behind an action (docs/outbox.md#base).

    /// Returns the open later writes of the same principal to the same entity that have a base of their own, with the strong ETag of the
    /// version they build on: that of the copy their client saw, or of the answer to an earlier write; nil where none is known.
    package func laterBases(after operation: QueuedWrite) async throws -> [(sequence: Int64, etag: String?)] {
        try await reading { db in
            let statement = try db.cachedStatement(
                sql: """
                    SELECT seq, base_etag, base_seq FROM op WHERE upstream = ? AND lane = ? AND entity = ? AND principal = ? AND seq > ?
                        AND \(OperationState.isOpen) AND method <> 'POST' AND (base_seq IS NULL OR base_seq < ?)
                    """)
            let arguments: StatementArguments = [
                operation.upstream, operation.lane, operation.entity ?? "", operation.principal ?? "", operation.sequence,
                operation.sequence,
            ]
            return try Row.fetchAll(statement, arguments: arguments).map { row in
                var columns = RowReader(row)
                let sequence: Int64 = try columns.next()
                let pinned: String? = try columns.nextIfAny()
                let base: Int64? = try columns.nextIfAny()
                return (sequence, try base.map { try Self.etag(in: db, of: $0) } ?? pinned)
            }
        }
    }

    /// Returns the last action of the same principal on the same entity that was delivered after a write was accepted, and before which the
    /// entity was read; nil without one.
    package func lastAction(before operation: QueuedWrite) async throws -> QueuedWrite? {
        try await reading { db in
            let statement = try db.cachedStatement(
                sql: """
                    SELECT \(OperationRow.columns) FROM op WHERE upstream = ? AND lane = ? AND entity = ? AND principal = ? AND seq < ?
                        AND method = 'POST' AND local_id IS NULL AND base_sha IS NOT NULL AND state = 'delivered' AND ended_at >= ?
                    ORDER BY seq DESC LIMIT 1
                    """)
            let arguments: StatementArguments = [
                operation.upstream, operation.lane, operation.entity ?? "", operation.principal ?? "", operation.sequence,
                operation.acceptedAt.milliseconds,
            ]
            return try Row.fetchOne(statement, arguments: arguments).map(OperationRow.operation(from:))
        }
    }

    /// True if an action of the same principal on the same entity lost its answer while its client waited, and was delivered after a
    /// write was accepted. The state before such an action is not known (an action that was queued pins it).
    package func followsUnseenAction(_ operation: QueuedWrite) async throws -> Bool {
        try await reading { db in
            let statement = try db.cachedStatement(
                sql: """
                    SELECT EXISTS (SELECT 1 FROM op WHERE upstream = ? AND lane = ? AND entity = ? AND principal = ? AND seq < ?
                        AND method = 'POST' AND local_id IS NULL AND base_sha IS NULL AND state = 'delivered' AND ended_at >= ?
                        AND EXISTS (SELECT 1 FROM attempt WHERE attempt.seq = op.seq AND \(AttemptRecord.mayStillRun)))
                    """)
            return try Bool.fetchOne(
                statement,
                arguments: [
                    operation.upstream, operation.lane, operation.entity ?? "", operation.principal ?? "", operation.sequence,
                    operation.acceptedAt.milliseconds,
                ]) ?? false
        }
    }

    /// Makes `state` the base of open writes.
    package func rebase(_ sequences: [Int64], to state: Conflict.Side) async throws {
        try await recorded {
            try await queue.commit { db in
                let name = try state.pin(in: db)
                let statement = try db.cachedStatement(
                    sql: """
                        UPDATE op SET base_etag = ?, base_sha = ?, base_seq = NULL
                        WHERE seq = ? AND \(OperationState.isOpen)
                        """)
                for sequence in sequences { try statement.execute(arguments: [EntityTag.condition(in: state.etag), name, sequence]) }
            }
        }
    }
}

// MARK: - Rows that are known without a read

extension QueuedWrite {
    /// What `DataStore.leased` makes of the row of a pending operation.
    fileprivate mutating func lease(at now: Moment) {
        (state, reason, endedAt, ended, probes) = (.inflight, nil, nil, nil, 0)
        (firstSentAt, begun) = (firstSentAt ?? now.at, begun ?? now.tick)
    }

    /// The row of this leased operation after the transition to `delivered`; nil for any other outcome, and where rows of other tables have a
    /// part in it.
    fileprivate func delivered(
        by disposition: Disposition, _ result: OperationResult?, _ attempt: AttemptRecord, at now: Moment
    ) -> QueuedWrite? {
        guard disposition.state == .delivered, let result, result.head.status < 500, attempt.sent == .yes, baseSequence == nil else {
            return nil
        }
        var operation = self
        (operation.state, operation.reason, operation.lastError) = (.delivered, disposition.reason, nil)
        (operation.endedAt, operation.ended) = (now.at, now.tick)
        operation.probes = 0
        operation.nextAttemptAt = disposition.nextAttemptAt ?? nextAttemptAt
        if disposition.countsAsAnswered { operation.answeredAttempts += 1 } else { operation.networkAttempts += 1 }
        operation.result = OperationResult(head: result.head, body: Array(result.body.prefix(DataStore.inlineLimit)))
        if localID != nil, let mapping = disposition.mapping { operation.serverID = mapping.id.text }
        return operation
    }
}
