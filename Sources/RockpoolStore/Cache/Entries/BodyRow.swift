// The database row of a file in `bodies/` (docs/storage.md#what-is-stored-where).
import FoundationEssentials
import GRDB
import RockpoolCore

/// The row of a body file, without its key and its reference count.
struct BodyRow: Equatable, Sendable {
    /// Bytes of the body as it was received.
    var length: Int64
    /// Bytes that the ledger counts for the file.
    var allocated: Int64
    var coding: StoredCoding
    /// Bytes of the file.
    var stored: Int64

    /// - Throws: `DatabaseError`, `UnreadableRow`.
    static func fetch(_ hash: [UInt8], in db: Database) throws -> BodyRow? {
        let statement = try db.cachedStatement(sql: "SELECT length, allocated, coding, stored FROM body WHERE sha = ?")
        return try Row.fetchOne(statement, arguments: [hash.data]).map { row in
            var columns = RowReader(row)
            let (length, allocated): (Int64, Int64) = (try columns.next(), try columns.next())
            guard let coding = StoredCoding(rawValue: try columns.next()) else { throw UnreadableRow(column: 2) }
            return BodyRow(length: length, allocated: allocated, coding: coding, stored: try columns.next())
        }
    }

    /// - Parameter known: the existing row; its file was deleted or truncated by another program.
    func write(as hash: [UInt8], replacing known: BodyRow?, in db: Database) throws {
        guard let known else {
            return try db.cachedStatement(sql: "INSERT INTO body (sha, length, allocated, coding, stored) VALUES (?, ?, ?, ?, ?)")
                .execute(arguments: [hash.data, length, allocated, coding.rawValue, stored])
        }
        try db.execute(
            sql: "UPDATE body SET allocated = ?, coding = ?, stored = ? WHERE sha = ?",
            arguments: [allocated, coding.rawValue, stored, hash.data])
        try db.execute(sql: "UPDATE total SET bytes = bytes + ? WHERE name = 'bodies'", arguments: [allocated - known.allocated])
        try db.execute(
            sql: "UPDATE entry SET coding = ? WHERE in_file = 1 AND body_sha = ?", arguments: [coding.rawValue, hash.data])
    }
}
