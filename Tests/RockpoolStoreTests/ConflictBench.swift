// Helpers of the conflict tests: conflicted operations, the sides of a conflict, a revision.
import Foundation
import GRDB
import HTTPTypes
import NIOCore
import RockpoolCore

@testable import RockpoolStore

struct ConflictBench {
    let time: ManualTime

    func put(_ id: String, _ change: (inout QueuedWriteDraft) -> Void = { _ in }) -> QueuedWriteDraft {
        var new = QueuedWriteDraft(
            id: id, request: RequestHead(method: .put, origin: origin, target: "/notes/1", fields: [.contentType: "application/json"]),
            body: .inline(Array(#"{"a":1}"#.utf8)), upstream: "notes", entity: "/notes/1", lane: "notes /notes/1",
            idempotencyKey: "key-\(id)")
        (new.collection, new.entityID, new.base) = ("/notes", "1", Conflict.Side(body: Array("pinned".utf8), etag: "\"v1\""))
        change(&new)
        return new
    }

    /// Returns a conflict with four different sides. The operation has sequence 1.
    func conflict(
        _ id: String, of operation: String, sequence: Int64 = 1, upstream: String = "notes", entity: String = "/notes/1"
    ) -> Conflict {
        Conflict(
            id: id, operation: operation, sequence: sequence, upstream: upstream, url: "https://api.example.com\(entity)", entity: entity,
            kind: .editDelete, strategy: .fieldMerge, detection: .weak, base: Conflict.Side(body: Array("base".utf8), contentType: "a/b"),
            mine: Conflict.Side(body: Array("mine".utf8)), theirs: Conflict.Side(body: Array("theirs".utf8), etag: "\"v2\""),
            result: Conflict.Side(body: Array("result".utf8)), openedAt: time.now)
    }

    /// Applies a user's decision to the stored conflict; for an unknown id, to a conflict with that id.
    @discardableResult
    func resolve(
        _ store: DataStore, _ id: String, as resolution: Conflict.Resolution, result: Conflict.Side?, decision: ConflictDecision,
        now: Timestamp
    ) async throws -> QueuedWrite {
        var decided = try await store.conflict(id: id) ?? conflict(id, of: "1")
        (decided.resolution, decided.result) = (resolution, result)
        return try await store.resolve(decided, decision: decision, now: now)
    }

    func revision(base: Conflict.Side? = nil, etag: String? = nil) -> RequestRevision {
        var revision = Self.revision(differs: true)
        (revision.base, revision.baseETag) = (base, etag)
        if let etag { revision.request.fields[.ifMatch] = etag }
        return revision
    }

    static func revision(differs: Bool) -> RequestRevision {
        let fields: HTTPFields = [.contentType: "application/merge-patch+json", .authorization: "Bearer x", .cookie: "a=b"]
        return RequestRevision(
            request: RequestHead(method: .patch, origin: origin, target: "/notes/1?x", fields: fields),
            body: .inline(Array(#"{"b":2}"#.utf8)), idempotencyKey: "key-new", base: nil, baseETag: nil, differsFromMine: differs)
    }

    /// Sends the operation and refuses it with a 412.
    func refuse(_ store: DataStore, _ id: String) async throws {
        _ = try await store.lease(id: id, now: time.now)
        _ = try await store.finish(
            id: id, disposition: Disposition(state: .conflicted, reason: .editEdit, detail: "412"),
            result: OperationResult(head: ResponseHead(status: 412, fields: [.eTag: "\"of the problem\""]), body: [1]),
            attempt: AttemptRecord(status: 412, sent: .yes), now: time.now)
    }

    func conflicted(_ store: DataStore, _ id: String, _ change: (inout QueuedWriteDraft) -> Void = { _ in }) async throws {
        _ = try await store.append(put(id, change))
        try await refuse(store, id)
    }

    func blob(_ store: DataStore, seed: UInt64) async throws -> OperationBody {
        let writer = try await store.blobWriter(expectedLength: 2_000_000)
        try await writer.append(ByteBuffer(bytes: bytes(2_000_000, seed: seed)))
        return try await writer.finish()
    }

    /// Returns the number of stored snapshots.
    func snapshots(_ store: DataStore) async throws -> Int {
        try await store.database.pool.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM snapshot") ?? -1 }
    }
}

extension DataStore {
    /// Forces an operation into any state, without a legal transition.
    func force(_ id: String, _ state: OperationState) async throws {
        try await queue.commit { db in
            let guarding = try String.fetchOne(db, sql: "SELECT sql FROM sqlite_master WHERE name = 'op_transition'") ?? ""
            try db.execute(sql: "DROP TRIGGER op_transition")
            try db.execute(sql: "UPDATE op SET state = ? WHERE id = ?", arguments: [state.rawValue, id])
            try db.execute(sql: guarding)
        }
    }
}
