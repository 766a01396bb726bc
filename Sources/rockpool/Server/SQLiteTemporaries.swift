// The directory of SQLite's temporary copy during VACUUM: on the volume of the database, where the free space was checked
// (docs/storage.md#compaction).
import Foundation
import RockpoolCore

enum SQLiteTemporaries {
    /// Sets `SQLITE_TMPDIR`. Must run before the first database is opened and before other threads may read the environment. A directory
    /// that the user has set is kept.
    static func keep(in storage: StorageSettings) {
        guard ProcessInfo.processInfo.environment["SQLITE_TMPDIR"] == nil else { return }
        setenv("SQLITE_TMPDIR", isLackingAny(storage) ? storage.stateDir + "/blobs/tmp" : storage.cacheDir + "/tmp", 1)
    }

    /// True before the first start in a container with a read-only root: the outbox is migrated before the cache makes its directory, and
    /// SQLite finds no other. The directory of the outbox's own temporary files is made before its database is opened.
    private static func isLackingAny(_ storage: StorageSettings) -> Bool {
        ![storage.cacheDir + "/tmp", "/var/tmp", "/usr/tmp", "/tmp"].contains(where: isWritable)
    }

    private static func isWritable(_ path: String) -> Bool { access(path, W_OK | X_OK) == 0 }
}
