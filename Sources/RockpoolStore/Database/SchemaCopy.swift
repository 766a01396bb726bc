// A copy of the database taken before a migration and kept beside it until the next clean stop (docs/storage.md#database-rules).
import GRDB
import Glibc
import RockpoolCore

/// Copies named `data.sqlite.v2` after their schema version.
struct SchemaCopy: Sendable {
    private let path: String

    init(of path: String) { self.path = path }

    /// Makes a complete and durable copy; an incomplete copy left by a crash is replaced.
    /// - Throws: `NoRoomForCopy`, before anything is changed; `DatabaseError`, `FileError`.
    func make(in db: Database, version: Int) throws {
        let pages = try Int64.fetchOne(db, sql: "PRAGMA page_count") ?? 0
        let (needed, free) = (pages * StoreDatabase.pageSize + .mib(16), FreeSpace.bytes(at: path))
        guard free > needed else { throw NoRoomForCopy(needed: needed, free: free) }
        let target = "\(path).v\(version)"
        Paths.remove(target)
        try db.execute(sql: "VACUUM INTO ?", arguments: [target])
        try Descriptor(target, O_RDONLY).synchronize()
        try Paths.synchronizeDirectory(directory)
    }

    /// Removes the copies. Called after the migrated database was closed completely.
    func remove() {
        let name = path.split(separator: "/").last ?? ""
        for other in Paths.names(in: directory) where other.hasPrefix("\(name).v") && Int(other.dropFirst(name.count + 2)) != nil {
            Paths.remove("\(directory)/\(other)")
        }
    }

    private var directory: String { path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "." }
}

/// Thrown when the disk has no space for the copy that precedes a migration.
struct NoRoomForCopy: Error, CustomStringConvertible {
    var needed: Int64
    var free: Int64
    var description: String {
        "this version keeps a copy of the database before it changes it: that takes \(needed) bytes, and \(free) are free"
    }
}
