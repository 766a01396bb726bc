// Files without rows and rows without files: what a crash may leave on either side (storage.md §2, §6 step 4).
import FoundationEssentials
import GRDB

/// What was found, to be counted or removed.
struct Orphans: Sendable {
    /// Bodies that no row names.
    var bodies: [[UInt8]] = []
    /// Files that are not ours, or temporaries of nobody.
    var strays: [String] = []
    /// Entries whose body is gone.
    var rows: [Leaving] = []
    var files: BodyFiles

    var count: Int { bodies.count + strays.count + rows.count }

    /// - Returns: how many there were.
    func removeFiles() throws -> Int {
        // The ledger has never counted them: it counts by rows.
        (bodies.map(files.path) + strays).count(where: { Paths.remove($0) })
    }
}

extension CacheStore {
    /// Compares the directory with the rows. On a file lane.
    ///
    /// The files are listed before the rows are read: a body that is stored meanwhile is never taken for an orphan.
    /// - Parameter leaving: entries counted as removed already.
    func orphans(includingTemporaries: Bool, leaving: Set<Int64> = []) throws -> Orphans {
        var found = Orphans(files: bodies)
        let files = bodies.all()
        let named = try database.pool.read { db in
            Set(try Data.fetchAll(db, sql: "SELECT sha FROM body").map { Array($0) })
        }
        for (hash, path) in files where !named.contains(hash) {
            if hash.isEmpty { found.strays.append(path) } else if !bodies.isAwaited(hash) { found.bodies.append(hash) }
        }
        if includingTemporaries {
            found.strays += Paths.names(in: "\(directory)/tmp").filter { !spools.contains($0) }.map { "\(directory)/tmp/\($0)" }
        }
        let present = Set(files.map(\.hash))
        let missing = named.subtracting(present).filter { FileStatus.of(bodies.path(of: $0)) == nil }
        found.rows = try database.pool.read { db in
            try missing.flatMap { hash in
                try Leaving.fetch(db, where: "in_file = 1 AND body_sha = ?", arguments: [hash.data], limit: .max)
            }
        }.filter { !leaving.contains($0.id) }
        return found
    }
}
