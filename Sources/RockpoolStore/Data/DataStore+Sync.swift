// The persistent state of pulls: cursors, tombstones, log lines; and the writes that a pull must not overwrite (docs/outbox.md#schema,
// docs/outbox.md#delta-pull).
import FoundationEssentials
import GRDB
import HTTPTypes
package import RockpoolCore

extension DataStore {
    /// Returns the scopes with this name prefix, sorted; a complete name selects that scope.
    package func pulledScopes(prefix: String) async throws -> [PulledScope] {
        try await reading { db in
            let rows = try Row.fetchAll(
                db,
                sql: """
                    SELECT scope, unsealed_url(value), synced_at, full_at, server_count FROM cursor
                    WHERE scope >= ? AND scope < ? ORDER BY scope
                    """,
                arguments: [prefix, prefix + "\u{10FFFF}"])
            return try rows.map { row in
                var columns = RowReader(row)
                return PulledScope(
                    name: try columns.next(), cursor: try columns.nextIfAny(String.self).flatMap(DeltaCursor.init(stored:)),
                    syncedAt: try columns.nextIfAny(Int64.self).map(Timestamp.init(milliseconds:)),
                    fullAt: try columns.nextIfAny(Int64.self).map(Timestamp.init(milliseconds:)), serverCount: try columns.nextIfAny())
            }
        }
    }

    /// Records an applied pull, with the entities that it found deleted and those that it found present (again).
    /// - Parameter deletedAt: by id, the time of each deletion that the upstream has stated, by its clock.
    package func recordPull(
        _ scope: PulledScope, upstream: String, type: String, gone: [String], deletedAt: [String: Timestamp] = [:], present: Set<String>,
        now: Timestamp
    ) async throws {
        try await recorded {
            try await queue.commit(weight: .kib(4) + Int64(gone.count) * 256, scope: .own) { db in
                try db.execute(
                    sql: """
                        INSERT INTO cursor (scope, value, full_at, synced_at, server_count) VALUES (?, sealed_url(?), ?, ?, ?)
                        ON CONFLICT (scope) DO UPDATE SET value = excluded.value, full_at = excluded.full_at,
                            synced_at = excluded.synced_at, server_count = excluded.server_count
                        """,
                    arguments: [
                        scope.name, scope.cursor?.stored, scope.fullAt?.milliseconds, scope.syncedAt?.milliseconds, scope.serverCount,
                    ])
                let known = try Set(
                    String.fetchAll(
                        db, sql: "SELECT entity_id FROM tombstone WHERE upstream = ? AND entity_type = ?", arguments: [upstream, type]))
                let ending = try db.cachedStatement(
                    sql: "DELETE FROM tombstone WHERE upstream = ? AND entity_type = ? AND entity_id = ?")
                for id in known.intersection(present) { try ending.execute(arguments: [upstream, type, id]) }
                let adding = try db.cachedStatement(
                    sql: """
                        INSERT INTO tombstone (upstream, entity_type, entity_id, at) VALUES (?, ?, ?, ?)
                        ON CONFLICT DO UPDATE SET at = excluded.at WHERE excluded.at < 0
                        """)
                for id in gone where !known.contains(id) || deletedAt[id] != nil {
                    // A negative number is the time that the upstream has stated, a positive one that of the pull.
                    let at = deletedAt[id].map { -$0.milliseconds } ?? now.milliseconds
                    try adding.execute(arguments: [upstream, type, id, at])
                }
            }
        }
    }

    /// Returns the time at which the upstream deleted an entity, by its clock; nil where no pull has brought that time.
    package func deletion(upstream: String, type: String, id: String) async throws -> Timestamp? {
        try await reading { db in
            try Int64.fetchOne(
                db, sql: "SELECT -at FROM tombstone WHERE upstream = ? AND entity_type = ? AND entity_id = ? AND at < 0",
                arguments: [upstream, type, id]
            ).map { Timestamp(milliseconds: $0) }
        }
    }

    /// Returns, by id, when each entity of a type was deleted at the upstream, or found deleted where it states no time.
    package func tombstones(upstream: String, type: String) async throws -> [String: Timestamp] {
        try await reading { db in
            let rows = try Row.fetchAll(
                db, sql: "SELECT entity_id, at FROM tombstone WHERE upstream = ? AND entity_type = ?", arguments: [upstream, type])
            return try rows.reduce(into: [:]) { found, row in
                var columns = RowReader(row)
                found[try columns.next(String.self)] = Timestamp(milliseconds: abs(try columns.next(Int64.self)))
            }
        }
    }

    /// Appends a line about an operation to the log, unless its last line with this event has the same detail.
    /// - Returns: true if a line was added; false also when the operation does not exist.
    package func log(_ event: String, operation id: String, detail: String, now: Timestamp) async throws -> Bool {
        try await recorded {
            try await queue.commit { db in
                try db.execute(
                    sql: """
                        INSERT INTO sync_log (n, at, seq, event, detail) SELECT \(NextNumber.sql(of: "sync_log")), ?1, seq, ?2, ?3
                            FROM op WHERE id = ?4 AND ?3 IS NOT (SELECT detail FROM sync_log WHERE seq = op.seq AND event = ?2 ORDER BY n DESC LIMIT 1)
                        """, arguments: [now.milliseconds, event, detail, id])
                return db.changesCount > 0
            }
        }
    }

    /// Returns the writes to known entities that may still take effect, in the order they were accepted; without dead ones, which cannot.
    package func pendingWrites(upstream: String) async throws -> [PendingWrite] {
        try await reading { db in
            let rows = try Row.fetchAll(
                db,
                sql: """
                    SELECT id, entity, method, state IN ('pending', 'parked') AND first_sent_at IS NULL, base_etag, base_version,
                        unsealed_fields(headers)
                    FROM op WHERE upstream = ? AND entity IS NOT NULL AND state <> 'dead' AND \(OperationState.isOpen)
                    ORDER BY seq
                    """, arguments: [upstream])
            return try rows.map { row in
                var columns = RowReader(row)
                var write = PendingWrite(
                    operation: try columns.next(), entity: try columns.next(), method: try columns.next(), isUnsent: try columns.next(),
                    baseETag: try columns.nextIfAny(), baseVersion: try columns.nextIfAny())
                // The client's own `If-Match` takes precedence.
                if let named = FieldCodec.decode(try columns.next(Data.self))?[.ifMatch], named != "*" { write.baseETag = named }
                return write
            }
        }
    }

    /// Returns the ETag in the response to the last delivered write of this proxy to an entity; nil when there was none.
    package func ownETag(upstream: String, entity: String) async throws -> String? {
        try await reading { db in
            let fields = try Data.fetchOne(
                db,
                sql: """
                    SELECT unsealed_fields(resp_headers) FROM op
                    WHERE state = 'delivered' AND upstream = ? AND entity = ? AND resp_headers IS NOT NULL
                    ORDER BY seq DESC LIMIT 1
                    """, arguments: [upstream, entity])
            return fields.flatMap { FieldCodec.decode($0)?[.eTag] }
        }
    }

    /// Returns whether an operation is in flight at the upstream or may be sent now, and whether one is in conflict.
    package func standing(upstream: String, now: Timestamp) async throws -> (isSending: Bool, isConflicted: Bool) {
        try await reading { db in
            guard let row = try Row.fetchOne(db, sql: Self.sending, arguments: [upstream, now.milliseconds]) else { return (false, false) }
            var columns = RowReader(row)
            return (try columns.next(), try columns.next())
        }
    }

    /// An operation may be sent now unless one before it in its lane comes first, by the columns of their rows: one of its principal that keeps
    /// its place, or is in conflict about the same entity; or one of another principal that makes progress and does not wait for a credential itself, which a proved one does not wait
    /// for unless that is proved as well.
    private static let sending = """
        SELECT EXISTS (SELECT 1 FROM op WHERE upstream = ?1 AND state = 'inflight') OR EXISTS (
                SELECT 1 FROM op AS front WHERE upstream = ?1 AND state = 'pending' AND next_at <= ?2 AND \(OperationState.isOpen("front"))
                AND NOT EXISTS (SELECT 1 FROM op WHERE lane = front.lane AND upstream = ?1 AND place < front.place AND \(OperationState.isOpen)
                    AND (principal = front.principal AND (\(OperationState.keepsOrder)
                            OR state = 'conflicted' AND entity IS front.entity
                                AND (front.method <> 'POST' OR front.entity_type IS NOT NULL))
                        OR principal <> front.principal AND state IN ('pending', 'inflight', 'uncertain')
                            AND NOT EXISTS (SELECT 1 FROM op AS own WHERE own.lane = op.lane AND own.upstream = ?1 AND own.place < op.place
                                AND own.principal = op.principal AND own.state = 'parked' AND own.reason = 'auth')
                            AND (principal IN (SELECT principal FROM proved) OR front.principal NOT IN (SELECT principal FROM proved))))
                AND NOT EXISTS (SELECT 1 FROM op_dep JOIN op AS needed ON needed.seq = op_dep.needs
                    WHERE op_dep.seq = front.seq AND op_dep.kind NOT IN ('group', 'collection') AND \(OperationState.isOpen("needed")))),
            EXISTS (SELECT 1 FROM op WHERE upstream = ?1 AND state = 'conflicted')
        """

    // MARK: - What traffic has shown
    // What upstreams' traffic has shown of their resources, kept over restarts (docs/outbox.md#learning).

    /// The beginning of the names under which `cursor` holds it: `shapes:UPSTREAM`. No scope of a pull begins like it: a name of an upstream
    /// holds no colon.
    private static let shapes = "shapes:"

    /// Returns what was learned of each upstream.
    package func learnedShapes() async throws -> [(upstream: String, value: JSONValue)] {
        try await reading { db in
            let rows = try Row.fetchAll(
                db, sql: "SELECT scope, value FROM cursor WHERE scope >= ? AND scope < ? ORDER BY scope",
                arguments: [Self.shapes, Self.shapes + "\u{10FFFF}"])
            return try rows.compactMap { row in
                var columns = RowReader(row)
                let scope: String = try columns.next()
                guard let text = try columns.nextIfAny(String.self), let value = try? JSONValue.parse(Array(text.utf8)) else { return nil }
                return (String(scope.dropFirst(Self.shapes.count)), value)
            }
        }
    }

    /// Stores what was learned of an upstream; nil removes it.
    package func keep(learned value: JSONValue?, upstream: String) async throws {
        let text = value.map { String(decoding: $0.serialized(), as: UTF8.self) }
        try await recorded {
            try await queue.commit(weight: 512 + Int64(text?.utf8.count ?? 0), scope: .own) { db in
                let scope = Self.shapes + upstream
                try db.execute(sql: "DELETE FROM cursor WHERE scope = ?", arguments: [scope])
                guard let text else { return }
                try db.execute(sql: "INSERT INTO cursor (scope, value) VALUES (?, ?)", arguments: [scope, text])
            }
        }
    }

    // MARK: - Replies
    // What upstreams answer to writes, kept over restarts (docs/outbox.md#replies).

    /// The beginning of the names under which `cursor` holds them: `reply:UPSTREAM METHOD PLACE`. No scope of a pull begins like it: a name of
    /// an upstream holds no colon.
    private static let replies = "reply:"

    /// Returns the stored forms, by upstream.
    package func learnedReplies() async throws -> [(upstream: String, route: WriteRoute, form: AnswerForm)] {
        try await reading { db in
            let rows = try Row.fetchAll(
                db, sql: "SELECT scope, value FROM cursor WHERE scope >= ? AND scope < ? ORDER BY scope",
                arguments: [Self.replies, Self.replies + "\u{10FFFF}"])
            return try rows.compactMap { row in
                var columns = RowReader(row)
                let scope: String = try columns.next()
                let parts = scope.dropFirst(Self.replies.count).split(separator: " ", maxSplits: 1)
                guard parts.count == 2, let form = try columns.nextIfAny(String.self).flatMap({ AnswerForm(text: $0) }) else { return nil }
                return (String(parts[0]), WriteRoute(name: String(parts[1])), form)
            }
        }
    }

    /// Stores changes of what an upstream answers.
    package func keep(_ changes: [EmptyAnswers.Change], upstream: String) async throws {
        try await recorded {
            try await queue.commit(weight: 512 * Int64(changes.count), scope: .own) { db in
                for change in changes {
                    let scope = "\(Self.replies)\(upstream) \(change.route.name)"
                    try db.execute(sql: "DELETE FROM cursor WHERE scope = ?", arguments: [scope])
                    guard let form = change.form else { continue }
                    try db.execute(sql: "INSERT INTO cursor (scope, value) VALUES (?, ?)", arguments: [scope, form.text])
                }
            }
        }
    }
}

/// The progress of one identity's pull of one resource.
package struct PulledScope: Hashable, Sendable {
    /// `upstream|collection|identity`.
    package var name: String
    /// Where the next pull continues; nil lists everything.
    package var cursor: DeltaCursor?
    /// The time of the last complete pull.
    package var syncedAt: Timestamp?
    /// The time of the last full listing.
    package var fullAt: Timestamp?
    /// Number of entities at the upstream, if known.
    package var serverCount: Int?

    package init(
        name: String, cursor: DeltaCursor? = nil, syncedAt: Timestamp? = nil, fullAt: Timestamp? = nil, serverCount: Int? = nil
    ) {
        self.name = name
        self.cursor = cursor
        self.syncedAt = syncedAt
        self.fullAt = fullAt
        self.serverCount = serverCount
    }
}
