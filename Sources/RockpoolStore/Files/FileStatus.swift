// Sizes as `du` sees them: allocated blocks, directories included (storage.md §2).
import Glibc
import RockpoolCore

/// What `stat` says of a path.
struct FileStatus: Sendable {
    /// Bytes in it.
    var size: Int64
    /// Bytes it takes on the disk.
    var allocated: Int64
    /// Permission bits only.
    var permissions: UInt32
    var isDirectory: Bool
    /// Neither a directory nor a link nor a device.
    var isFile: Bool
    /// When its bytes were last changed.
    var modified: Timestamp

    /// nil when there is nothing at the path. Symbolic links are not followed: what we own is never one.
    static func of(_ path: String) -> FileStatus? {
        var raw = stat()
        guard unsafe lstat(path, &raw) == 0 else { return nil }
        return FileStatus(raw)
    }

    /// The same of what a link leads to: a directory that its owner has put elsewhere, as systemd does, is his all the same.
    static func following(_ path: String) -> FileStatus? {
        var raw = stat()
        guard unsafe stat(path, &raw) == 0 else { return nil }
        return FileStatus(raw)
    }

    /// nil when the descriptor is not open.
    static func of(descriptor: CInt) -> FileStatus? {
        var raw = stat()
        guard unsafe fstat(descriptor, &raw) == 0 else { return nil }
        return FileStatus(raw)
    }

    private init(_ raw: stat) {
        size = Int64(raw.st_size)
        allocated = Int64(raw.st_blocks) * 512
        permissions = raw.st_mode & 0o777
        isDirectory = raw.st_mode & S_IFMT == S_IFDIR
        isFile = raw.st_mode & S_IFMT == S_IFREG
        modified = Timestamp(seconds: Int64(raw.st_mtim.tv_sec))
    }
}

/// Room on the file system that holds a path.
enum FreeSpace {
    /// Bytes an unprivileged process may still write; `.max` when the file system will not say.
    static func bytes(at path: String) -> Int64 {
        var raw = statvfs()
        guard unsafe statvfs(path, &raw) == 0 else { return .max }
        return Int64(clamping: raw.f_bavail).multipliedClamped(by: Int64(clamping: raw.f_frsize))
    }
}
