// File sizes as `du` counts them: allocated blocks, directories included (docs/storage.md#ledger).
import Glibc
import RockpoolCore

/// The `stat` result of a path.
struct FileStatus: Sendable {
    /// Length in bytes.
    var size: Int64
    /// Allocated bytes on the disk.
    var allocated: Int64
    /// Permission bits only.
    var permissions: UInt32
    var isDirectory: Bool
    /// True for a regular file: not a directory, link or device.
    var isFile: Bool
    var identity: FileIdentity
    /// Time of the last modification of the content.
    var modified: Timestamp

    /// Returns nil when the path does not exist. Symbolic links are not followed: no file of a store is one.
    static func of(_ path: String) -> FileStatus? {
        var raw = stat()
        guard unsafe lstat(path, &raw) == 0 else { return nil }
        return FileStatus(raw)
    }

    /// Follows a symbolic link: the owner may have moved the directory elsewhere, as systemd does.
    static func following(_ path: String) -> FileStatus? {
        var raw = stat()
        guard unsafe stat(path, &raw) == 0 else { return nil }
        return FileStatus(raw)
    }

    /// Returns nil when the descriptor is not open.
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
        identity = FileIdentity(device: UInt64(raw.st_dev), inode: UInt64(raw.st_ino))
        modified = Timestamp(seconds: Int64(raw.st_mtim.tv_sec))
    }
}

/// What makes two names those of one file.
struct FileIdentity: Hashable, Sendable {
    let device: UInt64
    let inode: UInt64
}
