// Free space of a file system.
import Glibc
import RockpoolCore

/// Free space of the file system that holds a path.
enum FreeSpace {
    /// Returns the bytes that an unprivileged process may still write; `.max` when `statvfs` fails.
    static func bytes(at path: String) -> Int64 {
        var raw = statvfs()
        guard unsafe statvfs(path, &raw) == 0 else { return .max }
        return Int64(clamping: raw.f_bavail).multipliedClamped(by: Int64(clamping: raw.f_frsize))
    }
}
