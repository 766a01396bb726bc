// Rows that a recovery could read but not insert, saved for the operator.
import FoundationEssentials
import GRDB
import Glibc
import RockpoolCore

/// `unplaced.jsonl` of a new directory: one JSON object per line. Created with the first row.
final class UnplacedRows {
    let path: String
    private(set) var count = 0

    init(in directory: String) { path = "\(directory)/unplaced.jsonl" }

    /// - Parameter row: its key, followed by its columns.
    /// - Throws: `FileError`.
    func add(_ row: Row, of table: SalvagedTable, why: String) throws {
        let members = zip(table.columns, row.databaseValues.dropFirst()).map { ($0, Self.json($1)) }
        let line = JSONValue.object(
            JSONObject([("table", .string(table.name)), ("why", .string(why)), ("row", .object(JSONObject(members)))]))
        let file = try Descriptor(path, O_WRONLY | O_CREAT | O_APPEND)
        try file.write(all: line.serialized() + [0x0A])
        count += 1
    }

    /// Encodes bytes as `{"base64": …}`.
    private static func json(_ value: DatabaseValue) -> JSONValue {
        switch value.storage {
        case .null: .null
        case .int64(let number): .number(JSONNumber(number))
        case .double(let number): .string("\(number)")
        case .string(let text): .string(text)
        case .blob(let bytes): .object(JSONObject([("base64", .string(Base64.encode(bytes)))]))
        }
    }
}
