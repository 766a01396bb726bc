// Copies rows into the new database; a row that violates its schema is written to a file beside it.
import FoundationEssentials
import GRDB
import Glibc
import RockpoolCore

extension Recovery {
    /// Parents first: a row that refers to a lost row cannot be inserted. Blobs are counted from their files.
    private static let order = ["snapshot", "op", "conflict", "attempt", "op_dep", "op_ref", "unproved"]

    /// - Parameter isCurrent: true if the schema is of this version, so that rows can be checked by decoding them.
    mutating func salvage(from source: DatabaseQueue, into sink: StoreDatabase, isCurrent: Bool) throws {
        let unplaced = unplaced
        var tables: [RecoveryReport.Table] = []
        var sequences: [String: Int64] = [:]
        try sink.pool.writeWithoutTransaction { db in
            if isCurrent { try DataSchema.guardTransitions(in: db) }
            let names = try String.fetchAll(
                db, sql: "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'blob' ORDER BY name"
            )
            let ordered = Self.order.filter(names.contains) + names.filter { !Self.order.contains($0) }
            try source.unsafeRead { damaged in
                sequences = Self.sequences(damaged)
                for name in ordered {
                    let highest = try Self.highestKey(of: name, sequences, in: db)
                    let table = try SalvagedTable(name, db)
                    tables.append(
                        try Self.copy(table, from: damaged, into: db, highestKey: highest, unplaced: unplaced, isCurrent: isCurrent))
                }
            }
            try Self.settle(sequences, in: db)
        }
        report.tables = tables
    }

    private static func copy(
        _ table: SalvagedTable, from damaged: Database, into db: Database, highestKey: Int64, unplaced: UnplacedRows, isCurrent: Bool
    ) throws -> RecoveryReport.Table {
        var result = RecoveryReport.Table(name: table.name)
        let before = unplaced.count
        try db.inTransaction(.immediate) {
            var salvage = TableSalvage(table, damaged, highestKey: highestKey) { row in
                do {
                    if try insert(row, of: table, isCurrent: isCurrent, in: db) { result.rows += 1 }
                } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
                    // With non-unique keys a row may be read twice; a duplicate is no loss.
                    if try !isThere(row, of: table, in: db) { try unplaced.add(row, of: table, why: error.message ?? "a constraint") }
                } catch let flaw as Flaw {
                    try unplaced.add(row, of: table, why: flaw.why)
                } catch is UnreadableRow {
                    try unplaced.add(row, of: table, why: "not what the schema says")
                }
            }
            try salvage.run()
            result.isWhole = salvage.isWhole
            result.unreadable = salvage.unreadable.prefix(20).map {
                $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)–\($0.upperBound)"
            }
            return .commit
        }
        result.unplaced = unplaced.count - before
        return result
    }

    /// A row that SQLite accepts and the store must not.
    private struct Flaw: Error { var why: String }

    /// Inserts a row in a savepoint, so that a rejected row leaves no trace, not even through a trigger.
    private static func insert(_ row: Row, of table: SalvagedTable, isCurrent: Bool, in db: Database) throws -> Bool {
        let places = table.columns.map { _ in "?" }.joined(separator: ", ")
        // `total` is the only table with rows in a new database.
        let verb = table.name == "total" ? "REPLACE" : "INSERT"
        try db.inSavepoint {
            let statement = try db.cachedStatement(
                sql: "\(verb) INTO \(table.name) (\(table.columns.joined(separator: ", "))) VALUES (\(places))")
            try statement.execute(arguments: StatementArguments(row.databaseValues.dropFirst()))
            if isCurrent { try check(row, of: table, in: db) }
            return .commit
        }
        return true
    }

    /// Rejects damaged rows that SQLite's constraints do not detect.
    private static func check(_ row: Row, of table: SalvagedTable, in db: Database) throws {
        switch table.name {
        case "op":
            let sequence: Int64 = row[0]
            let length = "SELECT body IS NOT NULL AND length(unsealed(body)) <> body_len FROM op WHERE seq = ?"
            if try Bool.fetchOne(db, sql: length, arguments: [sequence]) ?? true { throw Flaw(why: "its body is not of its length") }
            _ = try DataStore.fetch(in: db, where: "seq = ?", [sequence])
        case "snapshot":
            var columns = RowReader(row)
            _ = try columns.next(Int64.self)
            let name: Data = try columns.next()
            let isNamedRight = try Conflict.Side.fetch(in: db, name: name)?.name == name
            let stored = try Data.fetchOne(db, sql: "SELECT body FROM snapshot WHERE sha = ?", arguments: [name]) ?? Data()
            // A sealed one that could be opened is what was sealed.
            if !isNamedRight, !BodySeal.isSealed(stored) { throw Flaw(why: "it is not what its name says") }
        default: break
        }
    }

    private static func isThere(_ row: Row, of table: SalvagedTable, in db: Database) throws -> Bool {
        let condition = table.columns.map { "\($0) IS ?" }.joined(separator: " AND ")
        let sql = "SELECT EXISTS (SELECT 1 FROM \(table.name) WHERE \(condition))"
        return try Bool.fetchOne(db, sql: sql, arguments: StatementArguments(row.databaseValues.dropFirst())) ?? false
    }

    // MARK: - Sequences

    /// Returns the highest keys ever assigned, as far as they can be read.
    private static func sequences(_ damaged: Database) -> [String: Int64] {
        let rows = (try? Row.fetchAll(damaged, sql: "SELECT name, seq FROM sqlite_sequence")) ?? []
        return rows.reduce(into: [:]) { sequences, row in
            var columns = RowReader(row)
            if let name = try? columns.next(String.self), let value = try? columns.next(Int64.self) { sequences[name] = value }
        }
    }

    /// Returns the highest key to search for in a table; an estimate where it is unknown.
    private static func highestKey(of table: String, _ sequences: [String: Int64], in db: Database) throws -> Int64 {
        let counter = ["attempt", "op_dep", "op_ref", "unproved"].contains(table) ? "op" : table
        let highest = try highest(in: db)
        return sequences[counter].map { max($0, highest) } ?? max(sequences.values.max() ?? 0, highest) + 10_000
    }

    /// Returns the highest sequence of an operation in the rows recovered so far.
    private static func highest(in db: Database) throws -> Int64 {
        let sql = "SELECT max(coalesce((SELECT max(seq) FROM op), 0), coalesce((SELECT max(seq) FROM attempt), 0))"
        return try Int64.fetchOne(db, sql: sql) ?? 0
    }

    /// Sets the key counters, so that no key is assigned twice even if its row is lost.
    private static func settle(_ sequences: [String: Int64], in db: Database) throws {
        try db.inTransaction(.immediate) {
            for name in ["op", "sync_log", "conflict"] {
                let known = sequences[name]
                let key = name == "op" ? "seq" : "n"
                guard try Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = ?)", arguments: [name]) == true
                else { continue }
                // What a node of a fleet keeps alone has numbers beyond those that are counted.
                let counted = "SELECT max(\(key)) FROM \(name) WHERE \(key) < \(HeldOperations.first)"
                let attempted = "SELECT max(seq) FROM attempt WHERE seq < \(HeldOperations.first)"
                let last = try max(
                    Int64.fetchOne(db, sql: counted) ?? 0, name == "op" ? Int64.fetchOne(db, sql: attempted) ?? 0 : 0)
                // The number of rows after the last readable one is unknown, so a margin is added.
                let value = known.map { max($0, last) } ?? last + 100_000
                try db.execute(sql: "DELETE FROM sqlite_sequence WHERE name = ?", arguments: [name])
                try db.execute(sql: "INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", arguments: [name, value])
            }
            return .commit
        }
    }
}

/// Rows that a recovery could read but not insert, saved for the operator: `unplaced.jsonl` of a new directory, one JSON object per line.
/// Created with the first row.
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
