// An operation as a line of an export that another outbox can take in, under the same id (docs/outbox.md#import).
import FoundationEssentials
import GRDB
package import RockpoolCore

/// The rows of one operation, with the ids of other operations in the place of their numbers.
package struct PortableOperation: Sendable {
    /// A line that is no operation of an export, or one that cannot be taken in.
    package struct Fault: Error, Hashable, CustomStringConvertible {
        /// The operation's id; nil where it is not known.
        package var id: String?
        package var why: String

        package init(id: String? = nil, why: String) { (self.id, self.why) = (id, why) }

        package var description: String { [id, why].compactMap(\.self).joined(separator: ": ") }
    }

    /// A row of another table that belongs to the operation.
    struct Related: Sendable {
        let table: String
        let row: RowBytes
    }

    package let id: String
    /// The row of `op` without its body.
    var row: RowBytes
    let body: [UInt8]
    let related: [Related]
    /// Names the secret after which its principal is called.
    let keyMark: String

    /// Its place among the operations of the outbox that it comes from, by which an import orders them.
    package static func order(of line: JSONValue) -> (place: Int64, sequence: Int64)? {
        guard line["id"]?.string != nil, let numbers = line["row"]?["order"]?.array, numbers.count == 2,
            let place = numbers[0].integer, let sequence = numbers[1].integer
        else { return nil }
        return (place, sequence)
    }

    /// - Throws: `Fault` for a line that no export has written.
    package init(_ line: JSONValue) throws(Fault) {
        guard let id = line["id"]?.string, let member = line["row"], let row = Self.row(member["op"]), row["id"] == id.databaseValue,
            let members = member["related"]?.array, let keyMark = member["key"]?.string
        else { throw Fault(id: line["id"]?.string, why: "this is no operation of rockpool outbox export --format jsonl") }
        self.id = id
        self.row = row
        self.keyMark = keyMark
        body = try Self.body(of: line, type: String.fromDatabaseValue(row["content_type"]), id: id)
        related = try members.map { member throws(Fault) in
            guard let table = member["table"]?.string, PortableTable.all.contains(where: { $0.name == table }),
                let row = Self.row(member["row"])
            else { throw Fault(id: id, why: "it has a row that this version does not know") }
            return Related(table: table, row: row)
        }
        guard Int64.fromDatabaseValue(row["body_len"]) == Int64(body.count) else { throw Fault(id: id, why: "its body is not whole") }
    }

    /// `bodyBase64` has the exact bytes.
    private static func body(of line: JSONValue, type: String?, id: String) throws(Fault) -> [UInt8] {
        guard let text = line["bodyBase64"]?.string else { return OperationBodyJSON.bytes(of: line["body"] ?? .null, contentType: type) }
        guard let bytes = Base64.decode(text) else { throw Fault(id: id, why: "bodyBase64 is no base64") }
        return bytes
    }

    private static func row(_ member: JSONValue?) -> RowBytes? { member?.string.flatMap(Base64.decode).flatMap { RowBytes($0) } }

    init(id: String, row: RowBytes, body: [UInt8], related: [Related], keyMark: String) {
        (self.id, self.row, self.body, self.related, self.keyMark) = (id, row, body, related, keyMark)
    }

    /// The member `row` of its line.
    func json(place: Int64, sequence: Int64) -> JSONValue {
        [
            "order": [.number(JSONNumber(place)), .number(JSONNumber(sequence))], "key": .string(keyMark),
            "op": .string(Base64.encode(row.encoded)),
            "related": .array(related.map { ["table": .string($0.table), "row": .string(Base64.encode($0.row.encoded))] }),
        ]
    }

    /// Bytes of its rows.
    var length: Int64 { Int64(body.count + row.encoded.count + related.reduce(0) { $0 + $1.row.encoded.count }) }
}

/// A table with rows of operations, in the order in which they are taken in.
struct PortableTable: Sendable {
    let name: String
    /// Selects the rows of the operation `?1`.
    let selection: String

    static let all = [
        PortableTable(
            name: "snapshot",
            selection: """
                SELECT sha, etag, content_type, unsealed(body) AS body FROM snapshot WHERE sha IN (
                    SELECT base_sha FROM op WHERE seq = ?1 UNION SELECT base_sha FROM conflict WHERE seq = ?1
                    UNION SELECT mine_sha FROM conflict WHERE seq = ?1 UNION SELECT theirs_sha FROM conflict WHERE seq = ?1
                    UNION SELECT result_sha FROM conflict WHERE seq = ?1)
                """),
        PortableTable(name: "attempt", selection: "SELECT * FROM attempt WHERE seq = ?1 ORDER BY n"),
        PortableTable(name: "unproved", selection: "SELECT * FROM unproved WHERE seq = ?1"),
        PortableTable(name: "op_ref", selection: "SELECT * FROM op_ref WHERE seq = ?1"),
        PortableTable(
            name: "id_map",
            selection: """
                SELECT * FROM id_map WHERE local_id IN (
                    SELECT local_id FROM op WHERE seq = ?1 UNION SELECT local_id FROM op_ref WHERE seq = ?1)
                """),
        PortableTable(name: "conflict", selection: "SELECT * FROM conflict WHERE seq = ?1 ORDER BY n"),
        PortableTable(
            name: "op_dep",
            selection: """
                SELECT op_dep.* FROM op_dep JOIN op AS needed ON needed.seq = op_dep.needs
                    WHERE op_dep.seq = ?1 AND \(OperationState.isOpen("needed"))
                """),
    ]

    /// The columns that name an operation by its number, other than the one that a row belongs to.
    static let naming: Set<String> = ReplicatedTable.references.union(["needs", "created_by"])
    /// The columns that name a snapshot.
    static let snapshots: Set<String> = ["base_sha", "mine_sha", "theirs_sha", "result_sha"]

    /// The value of a column that names an operation by its id: of one that was replaced, what has replaced it.
    static func number(in column: String) -> String {
        switch column {
        case "needs": "(SELECT coalesce(superseded_by, seq) FROM op WHERE id = ?)"
        case "created_by": "coalesce((SELECT seq FROM op WHERE id = ?), 0)"
        default: "(SELECT seq FROM op WHERE id = ?)"
        }
    }
}
