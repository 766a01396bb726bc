// A conflict as a row: its sides by name, its fields as JSON that distinguishes absent values (docs/outbox.md#schema).
import FoundationEssentials
import GRDB
import RockpoolCore

enum ConflictRow {
    /// All columns but the number; in `lightColumns` without the sides and the fields.
    static let columns = "\(headColumns), base_sha, mine_sha, theirs_sha, result_sha, fields"
    static let lightColumns = "\(headColumns), NULL, NULL, NULL, NULL, NULL"

    private static let headColumns = """
        conflict.id, (SELECT id FROM op WHERE op.seq = conflict.seq), conflict.seq, upstream, url, entity, kind, strategy, detection, opened,
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
        let changes = found.map { "\($0.name) = ?" }.joined(separator: ", ")
        let again = "UPDATE conflict SET \(changes) WHERE seq = ? AND closed IS NULL RETURNING n"
        if let number = try Int64.fetchOne(db.cachedStatement(sql: again), arguments: StatementArguments(found.map(\.value) + [sequence])) {
            return number
        }
        let given: [(name: String, value: (any DatabaseValueConvertible)?)] =
            found + [("id", conflict.id), ("seq", sequence), ("opened", conflict.openedAt.milliseconds)]
        let marks = Array(repeating: "?", count: given.count).joined(separator: ", ")
        let first = "INSERT INTO conflict (\(given.map(\.name).joined(separator: ", "))) VALUES (\(marks)) RETURNING n"
        return try Int64.fetchOne(db.cachedStatement(sql: first), arguments: StatementArguments(given.map(\.value)))
    }

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

    // MARK: fields

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
