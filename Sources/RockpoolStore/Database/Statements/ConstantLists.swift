// Conditions without lists of constants (docs/storage.md#database-rules).
import GRDB

/// Comparisons with each constant of a list, one after the other.
///
/// For `x IN ('a', 'b', 'c')`, SQLite makes a table of the constants each time a statement runs, one for each such condition of its CHECKs,
/// its partial indexes and its triggers: an operation's change of state took 157 µs with them, and takes 23 without. Two constants it
/// compares one by one.
enum ConstantLists {
    /// Returns a text of SQL with chains of comparisons in the place of lists: `(x = 'a' OR x = 'b' OR x = 'c')`.
    static func unrolled(_ sql: String) -> String {
        var (result, rest) = ("", sql[...])
        while let found = rest.firstRange(of: " IN (") {
            let isNegated = rest[..<found.lowerBound].hasSuffix(" NOT")
            let before = rest[..<found.lowerBound].dropLast(isNegated ? 4 : 0)
            let operand = before.reversed().prefix { $0.isLetter || $0.isNumber || "_.".contains($0) }.reversed()
            let list = rest[found.upperBound...].prefix { $0 != ")" }
            let constants = list.split(separator: ",").map { $0.drop(while: \.isWhitespace) }
            let isConstant = constants.allSatisfy { $0.first == "'" && $0.last == "'" || Int($0) != nil }
            if !operand.isEmpty, constants.count > 2, isConstant {
                let (comparison, conjunction) = isNegated ? ("<>", " AND ") : ("=", " OR ")
                let chain = constants.map { "\(String(operand)) \(comparison) \($0)" }.joined(separator: conjunction)
                result += before.dropLast(operand.count) + "(\(chain))"
                rest = rest[list.endIndex...].dropFirst()
            } else {
                result += rest[..<found.upperBound]
                rest = rest[found.upperBound...]
            }
        }
        return result + rest
    }

    /// Unrolls the lists of the CHECKs and of the partial indexes of a database, where they stand: what they say stays the same, so that no
    /// content changes (https://www.sqlite.org/lang_altertable.html, "Making Other Kinds Of Table Schema Changes"), and an older Rockpool
    /// can use the database.
    static func unroll(in db: Database) throws {
        let rows = try Row.fetchAll(
            db, sql: "SELECT name, sql FROM sqlite_schema WHERE type IN ('table', 'index') AND instr(sql, ' IN (')")
        let changed = try rows.compactMap { row -> (name: String, sql: String)? in
            var columns = RowReader(row)
            let (name, sql): (String, String) = (try columns.next(), try columns.next())
            let unrolled = unrolled(sql)
            return unrolled == sql ? nil : (name, unrolled)
        }
        guard !changed.isEmpty else { return }
        let version = try Int.fetchOne(db, sql: "PRAGMA schema_version") ?? 0
        try db.inTransaction(.immediate) {
            try db.execute(sql: "PRAGMA writable_schema = ON")
            for (name, sql) in changed {
                try db.execute(sql: "UPDATE sqlite_schema SET sql = ? WHERE name = ?", arguments: [sql, name])
            }
            try db.execute(sql: "PRAGMA schema_version = \(version + 1); PRAGMA writable_schema = RESET")
            return .commit
        }
    }
}
