// Reasons against a recovery.

/// The reason why a recovery was refused. The damaged directory is unchanged; at most an empty target directory was created.
package enum RecoveryRefusal: Error, Hashable, CustomStringConvertible {
    case noDatabase(String)
    case notEmpty(String)
    case within(String)
    case noRoom(needed: Int64, free: Int64)
    /// SQLite finds no schema in the file.
    case unreadable(String, detail: String)
    case newerSchema(found: Int, known: Int)

    package var description: String {
        switch self {
        case .noDatabase(let path): "\(path) is missing or empty: there is nothing to recover; restore it from a backup"
        case .notEmpty(let path): "\(path) is not empty; name a new or an empty directory"
        case .within(let path): "\(path) lies in the damaged directory, and nothing is written there; name one elsewhere"
        case .noRoom(let needed, let free): "a recovery takes up to \(needed) bytes, and \(free) are free; name a directory on another disk"
        case .unreadable(let path, let detail):
            "SQLite finds no schema in \(path) (\(detail)): its first pages are lost; take data.sqlite from a backup"
        case .newerSchema(let found, let known):
            "the database has schema \(found), this Rockpool knows up to \(known); recover it with the newer version"
        }
    }
}
