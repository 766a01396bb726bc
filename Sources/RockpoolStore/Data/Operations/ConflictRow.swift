// A conflict as a row: its sides by name, its fields as JSON that distinguishes absent values (docs/outbox.md#schema).
import Crypto
import FoundationEssentials
import GRDB
package import RockpoolCore

enum ConflictRow {
    /// All columns but the number; in `lightColumns` without the sides and the fields.
    static let columns = "\(headColumns), base_sha, mine_sha, theirs_sha, result_sha, fields"
    static let lightColumns = "\(headColumns), NULL, NULL, NULL, NULL, NULL"

    private static let headColumns = """
        conflict.id, (SELECT id FROM op WHERE op.seq = conflict.seq), conflict.seq, upstream, unsealed_url(url), entity, kind, strategy, detection, opened,
        closed, resolution, decided_by
        """

    /// Stores a conflict with its sides. If the operation has an open conflict already, that one keeps its id and its time, and everything
    /// else is replaced.
    /// - Returns: its number.
    static func save(_ conflict: Conflict, of sequence: Int64, in db: Database) throws -> Int64? {
        let found: [(name: String, value: (any DatabaseValueConvertible)?)] = [
            ("upstream", conflict.upstream), ("url", conflict.url), ("entity", conflict.entity), ("kind", conflict.kind.rawValue),
            ("strategy", conflict.strategy.rawValue), ("detection", conflict.detection.rawValue),
            ("base_sha", try conflict.base?.pin(in: db)), ("mine_sha", try conflict.mine?.pin(in: db)),
            ("theirs_sha", try conflict.theirs?.pin(in: db)), ("result_sha", try conflict.result?.pin(in: db)),
            ("closed", conflict.closedAt?.milliseconds), ("resolution", conflict.resolution?.rawValue),
            ("decided_by", conflict.decidedBy?.rawValue), ("fields", text(of: conflict.fields)),
        ]
        let changes = found.map { "\($0.name) = \(mark(of: $0.name))" }.joined(separator: ", ")
        let again = "UPDATE conflict SET \(changes) WHERE seq = ? AND closed IS NULL RETURNING n"
        if let number = try Int64.fetchOne(db.cachedStatement(sql: again), arguments: StatementArguments(found.map(\.value) + [sequence])) {
            return number
        }
        let given: [(name: String, value: (any DatabaseValueConvertible)?)] =
            found + [("id", conflict.id), ("seq", sequence), ("opened", conflict.openedAt.milliseconds)]
        let marks = given.map { mark(of: $0.name) }.joined(separator: ", ")
        let first = "INSERT INTO conflict (\(given.map(\.name).joined(separator: ", "))) VALUES (\(marks)) RETURNING n"
        return try Int64.fetchOne(db.cachedStatement(sql: first), arguments: StatementArguments(given.map(\.value)))
    }

    private static func mark(of column: String) -> String { (column == "url" ? OperationColumn.Form.sealedURL : .plain).given }

    /// - Throws: `UnreadableRow` for a row that does not match the schema.
    static func conflict(_ columns: inout RowReader, in db: Database) throws -> Conflict {
        let id: String = try columns.next()
        let (operation, sequence): (String, Int64) = (try columns.next(), try columns.next())
        let (upstream, url, entity): (String, String, String) = (try columns.next(), try columns.next(), try columns.next())
        guard let kind = try columns.word(Conflict.Kind.self), let strategy = try columns.word(Resource.Conflict.self),
            let detection = try columns.word(Conflict.Detection.self)
        else { throw UnreadableRow(column: 6) }
        var conflict = Conflict(
            id: id, operation: operation, sequence: sequence, upstream: upstream, url: url, entity: entity, kind: kind, strategy: strategy,
            detection: detection, base: nil, mine: nil, theirs: nil, result: nil, openedAt: Timestamp(milliseconds: try columns.next()),
            closedAt: try columns.nextIfAny(Int64.self).map(Timestamp.init(milliseconds:)), resolution: try columns.word(),
            decidedBy: try columns.word())
        conflict.base = try side(&columns, in: db)
        conflict.mine = try side(&columns, in: db)
        conflict.theirs = try side(&columns, in: db)
        conflict.result = try side(&columns, in: db)
        if let text: String = try columns.nextIfAny() { conflict.fields = try fields(in: text) }
        return conflict
    }

    private static func side(_ columns: inout RowReader, in db: Database) throws -> Conflict.Side? {
        try columns.nextIfAny(Data.self).flatMap { try Conflict.Side.fetch(in: db, name: $0) }
    }

    // MARK: - Fields

    static func text(of fields: [MergedField]) -> String {
        let places = fields.map { field in
            var members = JSONObject([("pointer", .string(field.pointer.text)), ("conflicting", .bool(field.isConflicting))])
            for (name, value) in values { members[name] = field[keyPath: value] }
            return JSONValue.object(members)
        }
        return String(decoding: JSONValue.array(places).serialized(), as: UTF8.self)
    }

    private static func fields(in text: String) throws -> [MergedField] {
        // Written by this store: nested a little deeper than the input, and longer, because it contains four sides.
        let places = try JSONValue.parse(Array(text.utf8), sizeLimit: .max, depthLimit: JSONValue.depthLimit + 2).array ?? []
        return try places.map { place in
            guard let pointer = place["pointer"]?.string.flatMap(JSONPointer.init) else { throw UnreadableRow(column: 17) }
            var field = MergedField(
                pointer: pointer, base: nil, mine: nil, theirs: nil, merged: nil, isConflicting: place["conflicting"]?.bool ?? false)
            for (name, value) in values { field[keyPath: value] = place[name] }
            return field
        }
    }

    private static var values: [(String, WritableKeyPath<MergedField, JSONValue?>)] {
        [("base", \.base), ("mine", \.mine), ("theirs", \.theirs), ("merged", \.merged)]
    }
}

// MARK: - Reads

// Reads of conflicts: one, a list, the open ones, and those not examined yet (docs/reference/admin-api.md#conflicts `/v1/conflicts`).
extension DataStore {
    /// Returns a conflict with its sides and fields; nil when the id is unknown.
    package func conflict(id: String) async throws -> Conflict? {
        try await reading { try Self.conflict(in: $0, where: "conflict.id = ?", [id]) }
    }

    /// Returns the open conflict of an operation with its sides and fields; nil when there is none.
    package func openConflict(of sequence: Int64) async throws -> Conflict? {
        try await reading { try Self.conflict(in: $0, where: "conflict.seq = ? AND closed IS NULL", [sequence]) }
    }

    private static func conflict(in db: Database, where condition: String, _ arguments: StatementArguments) throws -> Conflict? {
        let row = try Row.fetchOne(db, sql: "SELECT \(ConflictRow.columns) FROM conflict WHERE \(condition)", arguments: arguments)
        guard let row else { return nil }
        var columns = RowReader(row)
        return try ConflictRow.conflict(&columns, in: db)
    }

    /// Returns conflicts, the newest first, without their sides and fields.
    package func conflicts(_ filter: ConflictFilter = ConflictFilter()) async throws -> Page<Conflict> {
        let limit = min(1000, max(1, filter.limit))
        var (conditions, arguments): ([String], StatementArguments) = (["n < ?"], [filter.cursor ?? .max])
        if let isOpen = filter.isOpen { conditions.append(isOpen ? "closed IS NULL" : "closed IS NOT NULL") }
        if let upstream = filter.upstream {
            conditions.append("upstream = ?")
            arguments += [upstream]
        }
        if let entity = filter.entity {
            conditions.append("entity = ?")
            arguments += [entity]
        }
        let condition = conditions.joined(separator: " AND ")
        let sql = "SELECT n, \(ConflictRow.lightColumns) FROM conflict WHERE \(condition) ORDER BY n DESC LIMIT ?"
        arguments += [limit + 1]
        return try await reading { [arguments] db in
            let rows = try Row.fetchAll(db, sql: sql, arguments: arguments)
            var (items, next): ([Conflict], Int64?) = ([], nil)
            for row in rows.prefix(limit) {
                var columns = RowReader(row)
                next = try columns.next()
                items.append(try ConflictRow.conflict(&columns, in: db))
            }
            return Page(items: items, next: rows.count > limit ? next : nil)
        }
    }

    /// Returns the operation's rounds: how often its strategy has decided since the last decision by a person, or in total
    /// (docs/outbox.md#strategies).
    package func rounds(of sequence: Int64) async throws -> Int {
        try await reading { try Self.rounds(of: sequence, in: $0) }
    }

    static func rounds(of sequence: Int64, in db: Database) throws -> Int {
        try Int.fetchOne(
            db,
            sql: """
                SELECT count(*) FROM conflict WHERE seq = ?1 AND decided_by = 'strategy'
                    AND n > coalesce((SELECT max(n) FROM conflict WHERE seq = ?1 AND decided_by = 'person'), 0)
                """, arguments: [sequence]) ?? 0
    }

    /// `INDEXED BY`, because the planner would otherwise scan all conflicts in order of upstreams.
    static let openCounts = "SELECT upstream, count(*) FROM conflict INDEXED BY conflict_waiting WHERE closed IS NULL GROUP BY upstream"

    /// Returns the number of open conflicts by upstream; an absent upstream has none.
    package func openConflictCounts() async throws -> [String: Int] {
        try await reading { db in
            let rows = try Row.fetchAll(db, sql: Self.openCounts)
            return try rows.reduce(into: [:]) { counts, row in
                var columns = RowReader(row)
                counts[try columns.next(String.self)] = try columns.next(Int.self)
            }
        }
    }

    /// Returns operations in conflict without an open conflict row: theirs must still be fetched and compared.
    package func unexaminedConflicts() async throws -> [QueuedWrite] {
        try await light(
            """
            state = 'conflicted' AND NOT EXISTS (SELECT 1 FROM conflict WHERE conflict.seq = op.seq AND closed IS NULL) ORDER BY seq
            """)
    }
}

/// The selection of a list of conflicts.
package struct ConflictFilter: Hashable, Sendable {
    package var upstream: String?
    /// The entity's path.
    package var entity: String?
    /// True for open conflicts only, false for decided ones only, nil for all.
    package var isOpen: Bool?
    /// 1…1000.
    package var limit: Int
    /// `next` of the previous page.
    package var cursor: Int64?

    package init(upstream: String? = nil, entity: String? = nil, isOpen: Bool? = true, limit: Int = 100, cursor: Int64? = nil) {
        self.upstream = upstream
        self.entity = entity
        self.isOpen = isOpen
        self.limit = limit
        self.cursor = cursor
    }
}

// MARK: - Snapshots

// Snapshots of representations, stored once for all references (docs/outbox.md#schema `snapshot`).
extension Conflict.Side {
    /// SHA-256 over ETag, media type and body, with length prefixes for the first two; an absent value differs from an empty one.
    var name: Data {
        var hash = SHA256()
        for part in [etag, contentType] { hash.update(data: Array((part.map { "\($0.utf8.count):\($0)" } ?? "-").utf8)) }
        hash.update(data: body)
        return Data(hash.finalize())
    }

    /// Stores the snapshot under its name, in the transaction of the row that references it.
    func pin(in db: Database) throws -> Data {
        let named = try db.cachedStatement(sql: "SELECT sealed_name(?)")
        let name = try Data.fetchOne(named, arguments: [name]) ?? name
        let sql = "INSERT INTO snapshot (sha, etag, content_type, body) VALUES (?, ?, ?, sealed(?)) ON CONFLICT DO NOTHING"
        try db.cachedStatement(sql: sql).execute(arguments: [name, etag, contentType, body.data])
        return name
    }

    static func fetch(in db: Database, name: Data) throws -> Self? {
        let statement = try db.cachedStatement(sql: "SELECT unsealed(body), content_type, etag FROM snapshot WHERE sha = ?")
        guard let row = try Row.fetchOne(statement, arguments: [name]) else { return nil }
        var columns = RowReader(row)
        return Self(body: Array(try columns.next(Data.self)), contentType: try columns.nextIfAny(), etag: try columns.nextIfAny())
    }
}

extension DataStore {
    /// Returns the pinned representation that an operation's client could have seen when it wrote; nil where it is unknown.
    package func base(of sequence: Int64) async throws -> Conflict.Side? {
        try await database.pool.read { db in
            let statement = try db.cachedStatement(sql: "SELECT base_sha FROM op WHERE seq = ? AND base_sha IS NOT NULL")
            return try Data.fetchOne(statement, arguments: [sequence])
                .flatMap { try Conflict.Side.fetch(in: db, name: $0) }
        }
    }
}
