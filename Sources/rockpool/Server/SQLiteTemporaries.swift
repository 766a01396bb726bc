// Where SQLite puts the copy that a VACUUM makes: beside what it copies, where there was room for it (storage.md §6).
import Foundation
import RockpoolCore

enum SQLiteTemporaries {
    /// Before the first database is opened, and before there are threads that might read the environment. A directory that the owner
    /// has chosen stays.
    static func keep(in storage: StorageSettings) {
        guard ProcessInfo.processInfo.environment["SQLITE_TMPDIR"] == nil else { return }
        setenv("SQLITE_TMPDIR", storage.cacheDir + "/tmp", 1)
    }
}
