// SQL conditions as values, so that a deletion can repeat the condition of its selection and later steps can exclude it.
import GRDB

/// A SQL expression with the values of its `?`.
struct RowCondition: Sendable {
    var sql: String
    var arguments: StatementArguments

    init(_ sql: String, _ arguments: StatementArguments = []) {
        self.sql = sql
        self.arguments = arguments
    }

    /// The condition that no row meets.
    static var never: RowCondition { RowCondition("0") }

    static func && (a: Self, b: Self) -> Self { Self("(\(a.sql)) AND (\(b.sql))", a.arguments + b.arguments) }
    static func || (a: Self, b: Self) -> Self { Self("(\(a.sql)) OR (\(b.sql))", a.arguments + b.arguments) }
    static prefix func ! (a: Self) -> Self { Self("NOT (\(a.sql))", a.arguments) }
}
