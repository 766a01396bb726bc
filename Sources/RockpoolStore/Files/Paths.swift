// Operations on names in the file system.
import Glibc
import RockpoolCore

/// Operations on paths and directories.
enum Paths {
    /// Creates a directory with mode 0700 unless it exists.
    static func makeDirectory(_ path: String) throws(FileError) {
        guard unsafe mkdir(path, 0o700) == 0 || errno == EEXIST else { throw FileError(call: "mkdir", path: path, code: errno) }
    }

    /// Creates a directory and all its missing parents.
    static func makeDirectories(_ path: String) throws(FileError) {
        if FileStatus.of(path)?.isDirectory == true { return }
        if let slash = path.lastIndex(of: "/"), slash != path.startIndex { try makeDirectories(String(path[..<slash])) }
        try makeDirectory(path)
    }

    static func move(_ path: String, to target: String) throws(FileError) {
        guard unsafe Glibc.rename(path, target) == 0 else { throw FileError(call: "rename", path: path, code: errno) }
    }

    /// Writes a whole file durably, in place of one that may be there. It is written to a temporary file, whose name begins with a dot, and
    /// renamed, so that a crash leaves either the old or the new file.
    static func replace(_ name: String, in directory: String, by bytes: [UInt8]) throws(FileError) {
        let temporary = "\(directory)/.\(name).new"
        remove(temporary)
        let file = try Descriptor.create(temporary)
        try file.write(all: bytes)
        try file.synchronize()
        try move(temporary, to: "\(directory)/\(name)")
        try synchronizeDirectory(directory)
    }

    /// - Returns: true if something was removed.
    @discardableResult
    static func remove(_ path: String) -> Bool { unsafe Glibc.unlink(path) == 0 }

    /// Makes the names in a directory survive a power failure (fsync of the directory).
    static func synchronizeDirectory(_ path: String) throws(FileError) {
        // `/.` also resolves a symbolic link: nothing inside a store is one, but the directory itself may be (systemd's DynamicUser).
        try Descriptor(path + "/.", O_RDONLY | O_DIRECTORY).synchronize()
    }

    /// Returns the names in a directory, unordered; none when the directory cannot be read.
    static func names(in path: String) -> [String] {
        guard let directory = unsafe opendir(path) else { return [] }
        defer { unsafe closedir(directory) }
        var names: [String] = []
        while let entry = unsafe readdir(directory) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                unsafe pointer.withMemoryRebound(to: CChar.self, capacity: Int(NAME_MAX) + 1) { unsafe String(cString: $0) }
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names
    }
}

/// The `stat` result of a path, with sizes as `du` counts them: allocated blocks, directories included (docs/storage.md#ledger).
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

/// The size of a directory as `du` counts it, measured in small steps.
enum DirectorySize {
    /// Returns the allocated bytes of a directory and everything under it; 0 when it does not exist. Each directory is one turn of a file
    /// lane.
    static func allocated(_ path: String, on lanes: FileLanes) async throws -> Int64 {
        var sum: Int64 = 0
        var waiting = [path]
        while let next = waiting.popLast() {
            let (bytes, below) = try await lanes.run(1) { level(next) }
            sum += bytes
            waiting += below
        }
        return sum
    }

    /// Returns the bytes of one directory with its files, and the directories in it.
    private static func level(_ path: String) -> (bytes: Int64, below: [String]) {
        var bytes = FileStatus.of(path)?.allocated ?? 0
        var below: [String] = []
        for name in Paths.names(in: path) {
            guard let status = FileStatus.of("\(path)/\(name)") else { continue }
            if status.isDirectory { below.append("\(path)/\(name)") } else { bytes += status.allocated }
        }
        return (bytes, below)
    }
}

/// Free space of the file system that holds a path.
enum FreeSpace {
    /// Returns the bytes that an unprivileged process may still write; `.max` when `statvfs` fails.
    static func bytes(at path: String) -> Int64 {
        var raw = statvfs()
        guard unsafe statvfs(path, &raw) == 0 else { return .max }
        return Int64(clamping: raw.f_bavail).multipliedClamped(by: Int64(clamping: raw.f_frsize))
    }
}

/// The name of this machine.
enum HostName {
    /// The host's name without its domain; `rockpool` where it has none.
    static var own: String {
        var bytes = [CChar](repeating: 0, count: 256)
        guard unsafe gethostname(&bytes, bytes.count - 1) == 0 else { return "rockpool" }
        let name = String(decoding: bytes.prefix { $0 != 0 && $0 != 0x2E }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return name.isEmpty ? "rockpool" : name
    }
}
