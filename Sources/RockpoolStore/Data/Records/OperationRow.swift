// The SELECT lists of operations, and the decoding of their rows (docs/outbox.md#schema).
import GRDB
import HTTPTypes
import RockpoolCore

enum OperationRow {
    /// One value of the SELECT list: a column of `op`, or a fact from another table.
    struct Value: Sendable {
        /// Names the value in an error.
        let name: String
        let sql: String
        /// True if lists are read without it.
        var isHeavy = false
        let read: OperationColumn.Reading
    }

    /// The SELECT list. Values are read by position.
    static let values: [Value] =
        OperationColumn.table.compactMap { column -> Value? in
            guard let read = column.read else { return nil }
            return Value(name: column.name, sql: column.selected, isHeavy: column.isHeavy, read: read)
        } + relations

    private static let relations: [Value] = [
        Value(
            name: "needs", sql: needs,
            read: { columns, operation in (operation.needs, operation.follows) = needs(in: try columns.nextIfAny()) }),
        Value(
            name: "server_id", sql: "(SELECT server_id FROM id_map WHERE id_map.local_id = op.local_id)",
            read: { $1.serverID = try $0.nextIfAny() }),
        Value(
            name: "lost_at", sql: "(SELECT max(started) FROM attempt WHERE attempt.seq = op.seq AND \(AttemptRecord.mayStillRun))",
            read: { $1.lostAt = try $0.momentIfAny() }),
        Value(
            name: "unproved", sql: "EXISTS (SELECT 1 FROM unproved WHERE unproved.seq = op.seq)",
            read: { $1.isUnproved = try $0.next() }),
    ]

    /// SQL for the operations that the one of `op` needs; those that matter for the order alone are negative.
    static let needs = {
        let kinds = DependencyKind.allCases.filter(\.isOfOrder).map { "'\($0.rawValue)'" }.joined(separator: ", ")
        return "(SELECT group_concat(iif(kind IN (\(kinds)), -needs, needs)) FROM op_dep WHERE op_dep.seq = op.seq)"
    }()

    /// Returns all operations in a value of `needs`, and those of them that matter for the order alone.
    static func needs(in text: String?) -> (all: Set<Int64>, follows: Set<Int64>) {
        let numbers = (text ?? "").split(separator: ",").compactMap { Int64($0) }
        return (Set(numbers.map { Int64(clamping: $0.magnitude) }), Set(numbers.filter { $0 < 0 }.map { Int64(clamping: $0.magnitude) }))
    }

    static let columns = values.map(\.sql).joined(separator: ", ")

    /// `columns` with NULL for the bodies of request and response, which may be large.
    static let lightColumns = values.map { $0.isHeavy ? "NULL" : $0.sql }.joined(separator: ", ")

    /// - Throws: `UnreadableRow` with the name of the column, for a row that does not match the schema.
    static func operation(from row: Row) throws -> QueuedWrite {
        var reader = RowReader(row)
        return try operation(from: &reader)
    }

    /// - Throws: as `operation(from:)` for a row.
    static func operation(from reader: inout RowReader) throws -> QueuedWrite {
        var operation = blank
        let values = Self.values
        do {
            for index in values.indices { try values[index].read(&reader, &operation) }
        } catch let error as UnreadableRow {
            throw UnreadableRow(column: error.column, name: values.indices.contains(error.column) ? values[error.column].name : nil)
        }
        return operation
    }

    /// The operation that every column is read into.
    private static let blank = QueuedWrite(
        sequence: 0, id: "", request: RequestHead(method: .get, origin: OriginAddress(scheme: .https, host: ""), target: ""),
        body: .none, upstream: "", lane: "", idempotencyKey: "", acceptedAt: .distantPast, nextAttemptAt: .distantPast)
}
