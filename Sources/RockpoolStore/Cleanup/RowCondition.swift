// Conditions on rows as values: what a step takes can be asked again when it deletes, and left out by the steps after it.
import GRDB

/// An SQL expression with the values of its `?`.
struct RowCondition: Sendable {
    var sql: String
    var arguments: StatementArguments

    init(_ sql: String, _ arguments: StatementArguments = []) {
        self.sql = sql
        self.arguments = arguments
    }

    /// What no row meets.
    static var never: RowCondition { RowCondition("0") }

    static func && (a: Self, b: Self) -> Self { Self("(\(a.sql)) AND (\(b.sql))", a.arguments + b.arguments) }
    static func || (a: Self, b: Self) -> Self { Self("(\(a.sql)) OR (\(b.sql))", a.arguments + b.arguments) }
    static prefix func ! (a: Self) -> Self { Self("NOT (\(a.sql))", a.arguments) }
}
