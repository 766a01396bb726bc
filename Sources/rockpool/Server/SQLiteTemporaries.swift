// The directory of SQLite's temporary copy during VACUUM: on the volume of the database, where the free space was checked
// (docs/storage.md#compaction).
import Foundation
import RockpoolCore

enum SQLiteTemporaries {
    /// Sets `SQLITE_TMPDIR`. Must run before the first database is opened and before other threads may read the environment. A directory
    /// that the user has set is kept.
    static func keep(in storage: StorageSettings) {
        guard ProcessInfo.processInfo.environment["SQLITE_TMPDIR"] == nil else { return }
        setenv("SQLITE_TMPDIR", storage.cacheDir + "/tmp", 1)
    }
}
