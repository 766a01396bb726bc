// Conflicts and their outcome, in one transaction: both sides are kept before either of them wins (docs/outbox.md#merging, P9).
import FoundationEssentials
import GRDB
import HTTPTypes
package import RockpoolCore

extension DataStore {
    /// Stores a conflict of an operation and applies the decision of its strategy to the operation.
    ///
    /// An already open conflict keeps its id and its time; everything else is replaced.
    /// - Parameters:
    ///   - conflict: with a decision it is closed: at `closedAt` or else now, by `decidedBy` or else the strategy.
    ///   - decision: nil leaves the conflict open for a person, and the operation waits as `conflicted`.
    ///   - rounds: the operation's rounds when it was examined as `conflicted`; another node may have decided since. Nil for a conflict that
    ///     is found before.
    ///   - isListed: false if the decided conflict is not kept, because the write meets an action of its own client.
    /// - Throws: `.illegal` when the operation is being sent, is parked, has ended, or was decided since, `.notFound`, `.unavailable`. Nothing has changed
    ///   then.
    package func meet(
        _ conflict: Conflict, decision: ConflictDecision?, after rounds: Int? = nil, isListed: Bool = true, now: Timestamp
    )
        async throws -> QueuedWrite
    {
        var met = conflict
        met.closedAt = decision.map { _ in conflict.closedAt ?? now }
        met.decidedBy = decision.map { _ in conflict.decidedBy ?? .strategy }
        if decision == nil { met.resolution = nil }
        return try await decided(by: decision, sides: [met.base, met.mine, met.theirs, met.result]) { [met] db in
            let operation = try Self.position(met.operation, in: db)
            if let rounds {
                let isAsExamined = try operation.state == .conflicted && rounds == Self.rounds(of: operation.sequence, in: db)
                guard isAsExamined else { throw DataStoreError.illegal(from: operation.state, to: .conflicted) }
            }
            try Self.transition(
                in: db, sequence: operation.sequence, from: operation.state, to: .conflicted,
                reason: OperationReason(rawValue: met.kind.rawValue),
                allowed: Self.meeting, now: now)
            let number = try ConflictRow.save(met, of: operation.sequence, in: db)
            if let decision {
                try self.carryOut(
                    decision, of: number, on: operation.sequence, from: .conflicted, detail: isListed ? nil : Self.ownAction, in: db,
                    now: now
                )
                if !isListed { try db.execute(sql: "DELETE FROM conflict WHERE n = ?", arguments: [number]) }
            }
            return met.operation
        }
    }

    /// The history's text of a merge that is no conflict.
    private static let ownAction = "merged with the effect of an action of its own client"

    /// The states in which a conflict may be found: before sending, by a probe, or by a refusal.
    private static let meeting: Set<OperationState> = [.pending, .uncertain, .conflicted]

    /// Applies a person's decision about an open conflict.
    /// - Parameter conflict: the decided conflict with its `resolution`, `result` and `fields`, and with theirs at the time of the
    ///   decision.
    /// - Throws: `.conflictNotFound`, `.conflictDecided`, `.illegal` when the operation has moved on, `.unavailable`. Nothing has changed
    ///   then.
    package func resolve(
        _ conflict: Conflict, decision: ConflictDecision, now: Timestamp
    ) async throws -> QueuedWrite {
        let id = conflict.id
        return try await decided(by: decision, sides: [conflict.theirs, conflict.result]) { db in
            let row = try Row.fetchOne(
                db, sql: "SELECT n, closed IS NULL, op.id FROM conflict JOIN op USING (seq) WHERE conflict.id = ?", arguments: [id])
            guard let row else { throw DataStoreError.conflictNotFound(id: id) }
            var columns = RowReader(row)
            let (number, isOpen): (Int64, Bool) = (try columns.next(), try columns.next())
            guard isOpen else { throw DataStoreError.conflictDecided(id: id) }
            let operationID: String = try columns.next()
            let operation = try Self.position(operationID, in: db)
            try db.execute(
                sql: """
                    UPDATE conflict SET closed = ?, resolution = ?, decided_by = 'person', theirs_sha = ?, result_sha = ?, fields = ?
                    WHERE n = ?
                    """,
                arguments: [
                    now.milliseconds, conflict.resolution?.rawValue, try conflict.theirs?.pin(in: db), try conflict.result?.pin(in: db),
                    ConflictRow.text(of: conflict.fields), number,
                ])
            try self.carryOut(decision, of: number, on: operation.sequence, from: operation.state, in: db, now: now)
            return operationID
        }
    }

    /// Runs `body` in one transaction, even on a full disk; the blob of a revision is released once that transaction references it.
    /// - Parameter body: returns the operation's id.
    private func decided(
        by decision: ConflictDecision?, sides: [Conflict.Side?], _ body: @escaping @Sendable (Database) throws -> String
    ) async throws -> QueuedWrite {
        var weight = sides.reduce(Int64.kib(4)) { $0 + Int64($1?.body.count ?? 0) }
        if case .resend(let revision) = decision { weight += revision.body.length }
        let operation = try await recorded {
            try await queue.commit(weight: weight) { db in
                let operation = try self.known(try body(db), in: db)
                FailPoint.merging.reached()
                return operation
            }
        }
        if case .resend(let revision) = decision, case .blob(let sha256, _) = revision.body { releaseBlob(sha256) }
        return operation
    }

    // MARK: - Decisions
    // The outcome of a decided conflict: the operation is revised, ended as delivered, or given up (docs/outbox.md#decisions).

    /// Applies a decision to an operation whose conflict has just been closed.
    /// - Parameters:
    ///   - state: the operation's state.
    ///   - detail: the history's text; nil names the conflict.
    /// - Throws: `.illegal` when it is not `conflicted`.
    func carryOut(
        _ decision: ConflictDecision, of conflict: Int64?, on sequence: Int64, from state: OperationState, detail: String? = nil,
        in db: Database, now: Timestamp
    ) throws {
        var (update, values): (TransitionUpdate, [DatabaseValue]) = (.plain, [])
        switch decision {
        case .resend(let revision): (update, values) = (Self.revised, try revisedValues(revision, in: db))
        case .yield: break
        case .delivered: (update, values) = (Self.probed, [try Self.fieldsOfTheirs(conflict, in: db).databaseValue])
        }
        let detail =
            try detail
            ?? String.fetchOne(
                db, sql: "SELECT 'conflict ' || id || coalesce(' ' || resolution, '') FROM conflict WHERE n = ?", arguments: [conflict])
        try Self.transition(
            in: db, sequence: sequence, from: state, to: decision.state, reason: decision.reason, allowed: [.conflicted], detail: detail,
            nextAttemptAt: decision.state == .pending ? now : nil, update: update, values: values, now: now)
        if decision.leavesMine { try Self.release(sequence, conflict: conflict, in: db) }
    }

    /// Replaces the request of an operation. Earlier attempts count only as history: the revision has not been sent or tried.
    private static let revised = TransitionUpdate(
        """
        origin = ?, method = ?, target = sealed_url(?), intent = ?, headers = sealed_fields(?), content_type = ?, body = sealed(?),
            blob_sha = ?, body_len = ?, idem_key = ?, key_origin = 'proxy', key_rev = key_rev + 1, base_sha = ?, base_etag = ?, base_seq = NULL, first_sent_at = NULL,
            sent_tick = NULL, answered_attempts = 0
        """)

    /// Attaches the blob of a revision, and pins its base.
    private func revisedValues(_ revision: RequestRevision, in db: Database) throws -> [DatabaseValue] {
        try attachBlob(of: revision.body, in: db)
        let (request, body) = (revision.request, revision.body)
        let values: [(any DatabaseValueConvertible)?] = [
            request.origin.url, request.method.rawValue, request.target, QueuedWriteDraft.intent(of: request.method),
            FieldCodec.encode(QueuedWriteDraft.bare(request.fields)), request.fields[.contentType], body.inlineData, body.blobHash,
            body.length, revision.idempotencyKey, try revision.base?.pin(in: db), revision.baseETag,
        ]
        return values.map { $0?.databaseValue ?? .null }
    }

    /// Ends an operation as delivered although its request was refused: of the response only the ETag is kept, that of theirs, which later
    /// writes build on.
    private static let probed = TransitionUpdate("resp_status = NULL, resp_headers = sealed_fields(?), resp_body = NULL")

    private static func fieldsOfTheirs(_ conflict: Int64?, in db: Database) throws -> Data? {
        let etag = try String.fetchOne(
            db, sql: "SELECT etag FROM snapshot JOIN conflict ON sha = theirs_sha WHERE n = ? AND etag IS NOT NULL", arguments: [conflict])
        return etag.map { FieldCodec.encode([.eTag: $0]) }
    }

    /// Detaches later writes from a result that did not come about, including writes built on it through operations that came to nothing.
    /// The representation their clients saw stays their base, where it is known, and they are not sent with an ETag of the result.
    private static func release(_ sequence: Int64, conflict: Int64?, in db: Database) throws {
        try db.execute(
            sql: """
                WITH RECURSIVE built (seq) AS (SELECT ?1 UNION
                    SELECT op.seq FROM built JOIN op ON op.base_seq = built.seq WHERE op.state IN ('cancelled', 'superseded'))
                UPDATE op SET base_sha = coalesce(base_sha, (SELECT mine_sha FROM conflict WHERE n = ?2 AND base_seq = ?1)),
                    base_seq = NULL, base_etag = NULL
                WHERE base_seq IN (SELECT seq FROM built) AND \(OperationState.isOpen)
                """, arguments: [sequence, conflict])
    }
}

/// A decision about an operation in conflict, by its strategy or by a person (docs/outbox.md#decisions, docs/outbox.md#keys).
package enum ConflictDecision: Hashable, Sendable {
    /// The operation is sent again in changed form: in its place in the lane, under another key.
    case resend(RequestRevision)
    /// Theirs stands: the operation ends as `superseded`, reason `yielded`.
    case yield
    /// The upstream shows the operation's effect already: it ends as `delivered`, reason `probed`.
    /// - Parameter differsFromMine: as in `RequestRevision`.
    case delivered(differsFromMine: Bool)

    var state: OperationState {
        switch self {
        case .resend: .pending
        case .yield: .superseded
        case .delivered: .delivered
        }
    }

    var reason: OperationReason? {
        switch self {
        case .resend: nil
        case .yield: .yielded
        case .delivered: .probed
        }
    }

    /// True if the entity becomes different from the state that later writes were built on.
    var leavesMine: Bool {
        switch self {
        case .resend(let revision): revision.differsFromMine
        case .yield: true
        case .delivered(let differsFromMine): differsFromMine
        }
    }
}

/// The next revision of an operation. Its id, place, principal, client key and fingerprint stay those it was accepted with.
package struct RequestRevision: Hashable, Sendable {
    package var request: RequestHead
    /// A blob must be finished; the operation references it from now on.
    package var body: OperationBody
    /// A new key: no key is used with two payloads.
    package var idempotencyKey: String
    /// The new base: theirs. At most 1 MiB.
    package var base: Conflict.Side?
    /// The strong ETag of theirs; nil where it has none.
    package var baseETag: String?
    /// True if the result differs from the operation's intent: later operations built on it then lose their base.
    package var differsFromMine: Bool

    package init(
        request: RequestHead, body: OperationBody, idempotencyKey: String, base: Conflict.Side?, baseETag: String?, differsFromMine: Bool
    ) {
        self.request = request
        self.body = body
        self.idempotencyKey = idempotencyKey
        self.base = base
        self.baseETag = baseETag
        self.differsFromMine = differsFromMine
    }
}
