// The outcome of a decided conflict: the operation is revised, ended as delivered, or given up (docs/outbox.md#decisions).
import FoundationEssentials
import GRDB
import HTTPTypes
import RockpoolCore

extension DataStore {
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
        origin = ?, method = ?, target = sealed_target(?), intent = ?, headers = ?, content_type = ?, body = sealed(?), blob_sha = ?, body_len = ?,
            idem_key = ?, key_origin = 'proxy', key_rev = key_rev + 1, base_sha = ?, base_etag = ?, base_seq = NULL, first_sent_at = NULL,
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
    private static let probed = TransitionUpdate("resp_status = NULL, resp_headers = ?, resp_body = NULL")

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
