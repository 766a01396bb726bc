// Reads one table of a damaged database around its unreadable pages (sqlite.org/recovery.html).
import FoundationEssentials
import GRDB

/// Reads a table from both ends towards the damage, then halves the remaining gap until only unreadable keys are left.
struct TableSalvage {
    let table: SalvagedTable
    let source: Database
    /// The highest key to search for when the far end cannot be read.
    let highestKey: Int64
    /// Called with each row once, or repeatedly where several rows have the same key.
    let take: (Row) throws -> Void

    /// True if every page could be read.
    private(set) var isWhole = true
    /// Keys for which nothing could be read.
    private(set) var unreadable: [ClosedRange<Int64>] = []
    /// Remaining attempts, which bound the cost of a lost interior page.
    private var attempts = 50_000

    init(_ table: SalvagedTable, _ source: Database, highestKey: Int64, take: @escaping (Row) throws -> Void) {
        self.table = table
        self.source = source
        self.highestKey = highestKey
        self.take = take
    }

    /// - Throws: the errors of `take`.
    mutating func run() throws {
        guard table.hasIntegerKey else { return try readByPrefix() }
        let front = try read(Int64.min.databaseValue, Int64.max.databaseValue)
        if front.isEnded { return }
        isWhole = false
        let low = front.last.flatMap { Int64.fromDatabaseValue($0) }.map(following) ?? 0
        let back = try read(low.databaseValue, Int64.max.databaseValue, backwards: true)
        if back.isEnded { return }
        let high = back.last.flatMap { Int64.fromDatabaseValue($0) }.map(preceding) ?? highestKey
        var gaps = low <= high ? [low...high] : []
        while !gaps.isEmpty {
            let round = gaps
            gaps = []
            // Breadth first: when the attempts run out, every gap has been tried a little.
            for gap in round { gaps += try narrow(gap) }
        }
        unreadable = Self.merged(unreadable)
    }

    /// Reads rows from both ends of a gap.
    /// - Returns: the remaining gap, in halves.
    private mutating func narrow(_ gap: ClosedRange<Int64>) throws -> [ClosedRange<Int64>] {
        guard attempts > 0 else {
            unreadable.append(gap)
            return []
        }
        let front = try read(gap.lowerBound.databaseValue, gap.upperBound.databaseValue)
        if front.isEnded { return [] }
        let low = front.last.flatMap { Int64.fromDatabaseValue($0) }.map(following) ?? gap.lowerBound
        guard low <= gap.upperBound else { return [] }
        let back = try read(low.databaseValue, gap.upperBound.databaseValue, backwards: true)
        if back.isEnded { return [] }
        let high = back.last.flatMap { Int64.fromDatabaseValue($0) }.map(preceding) ?? gap.upperBound
        guard low <= high else { return [] }
        if low == high {
            unreadable.append(low...high)
            return []
        }
        let middle = low + (high - low) / 2
        return [low...middle, middle + 1...high]
    }

    /// Reads a table with keys that are not integers: from both ends, then the keys that begin with each byte.
    private mutating func readByPrefix() throws {
        // All texts and hashes are between these two: SQLite sorts texts before blobs.
        let most = Data(repeating: 0xFF, count: 64).databaseValue
        let front = try read("".databaseValue, most)
        if front.isEnded { return }
        isWhole = false
        _ = try read(front.last ?? "".databaseValue, most, backwards: true)
        for byte in UInt8.min...UInt8.max {
            let (low, high) = (Data([byte]), Data([byte] + [UInt8](repeating: 0xFF, count: 63)))
            try readBothWays(low.databaseValue, high.databaseValue)
            guard (0x20..<0x7F).contains(byte) else { continue }
            let letter = String(UnicodeScalar(byte))
            try readBothWays(letter.databaseValue, (letter + String(repeating: "\u{10FFFF}", count: 16)).databaseValue)
        }
    }

    private mutating func readBothWays(_ low: DatabaseValue, _ high: DatabaseValue) throws {
        let front = try read(low, high)
        if !front.isEnded { _ = try read(front.last ?? low, high, backwards: true) }
    }

    private func following(_ key: Int64) -> Int64 { table.hasEqualKeys || key == .max ? key : key + 1 }
    private func preceding(_ key: Int64) -> Int64 { table.hasEqualKeys || key == .min ? key : key - 1 }

    /// Reads until the end, or until a page cannot be read.
    private mutating func read(
        _ low: DatabaseValue, _ high: DatabaseValue, backwards: Bool = false
    ) throws -> (last: DatabaseValue?, isEnded: Bool) {
        attempts -= 1
        var last: DatabaseValue?
        do {
            let rows = try Row.fetchCursor(source, sql: table.query(backwards: backwards), arguments: [low, high])
            while let row = try rows.next() {
                do { try take(row) } catch { throw TakingFailed(error: error) }
                last = row[0]
            }
            return (last, true)
        } catch let failure as TakingFailed {
            throw failure.error
        } catch is DatabaseError {
            return (last, false)
        }
    }

    private struct TakingFailed: Error { var error: any Error }

    private static func merged(_ ranges: [ClosedRange<Int64>]) -> [ClosedRange<Int64>] {
        ranges.sorted { $0.lowerBound < $1.lowerBound }.reduce(into: []) { merged, range in
            if let last = merged.last, last.upperBound >= range.lowerBound - 1 {
                merged[merged.count - 1] = last.lowerBound...max(last.upperBound, range.upperBound)
            } else {
                merged.append(range)
            }
        }
    }
}

/// A table as defined by the schema.
struct SalvagedTable: Sendable {
    var name: String
    var columns: [String]
    /// The column that orders the rows: `rowid`, or the first column of the primary key.
    var key: String
    /// True if keys are integers: only a gap between integers can be halved.
    var hasIntegerKey: Bool
    /// True if several rows may have the same key.
    var hasEqualKeys: Bool
    private var isRowidTable: Bool

    /// - Parameter db: an undamaged database of the same schema.
    init(_ name: String, _ db: Database) throws {
        self.name = name
        columns = try String.fetchAll(db, sql: "SELECT name FROM pragma_table_info(?) ORDER BY cid", arguments: [name])
        isRowidTable = try Bool.fetchOne(db, sql: "SELECT wr = 0 FROM pragma_table_list WHERE name = ?", arguments: [name]) ?? true
        let keys = try Row.fetchAll(db, sql: "SELECT name, type FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk", arguments: [name])
        var first = keys.first.map { RowReader($0) }
        let (column, type) = (try first?.next(String.self) ?? "rowid", try first?.next(String.self) ?? "")
        key = isRowidTable ? "rowid" : column
        hasIntegerKey = isRowidTable || type == "INTEGER"
        hasEqualKeys = !isRowidTable && keys.count > 1
    }

    /// A query for the rows between two keys, both inclusive, from either end; the key first, then `columns`.
    func query(backwards: Bool) -> String {
        let hint = isRowidTable ? "NOT INDEXED" : ""
        let order = backwards ? "DESC" : "ASC"
        return """
            SELECT \(key), \(columns.joined(separator: ", ")) FROM \(name) \(hint) WHERE \(key) >= ? AND \(key) <= ? ORDER BY \(key) \(order)
            """
    }
}
