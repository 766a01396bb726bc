// Why a command of the shared database failed (https://www.postgresql.org/docs/15/errcodes-appendix.html).

/// An error of the connection or of the server.
enum PostgreSQLError: Error, Equatable {
    /// libpq is not installed.
    case missingLibrary
    /// No connection, or it broke.
    case unreachable(String)
    /// No answer in time. What was asked may have happened.
    case late
    /// The server refused the statement.
    case refused(state: String, String)
    /// The server gave a warning where one means that the commit does not survive what was asked for.
    case warned(String)
}

extension PostgreSQLError: CustomStringConvertible {
    var description: String {
        switch self {
        case .missingLibrary: "libpq.so.5 is not installed; install Debian's libpq5"
        case .unreachable(let detail): "PostgreSQL cannot be reached: \(detail)"
        case .late: "PostgreSQL did not answer in time"
        case .refused(let state, let detail): "PostgreSQL refused it (\(state)): \(detail)"
        case .warned(let detail): "PostgreSQL does not warrant the commit: \(detail)"
        }
    }
}
