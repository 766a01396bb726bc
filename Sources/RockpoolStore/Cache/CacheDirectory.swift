// Two small customs of cache directories: the tag that backups heed, and what becomes of a damaged database (storage.md §1).
import Glibc
import RockpoolCore

/// `CACHEDIR.TAG`, by which backup programs skip the directory (bford.info/cachedir).
enum CacheDirectoryTag {
    private static let text = """
        Signature: 8a477f597d28d172789f06886806bc55
        # This directory is Rockpool's cache. It may be deleted at any time.

        """

    static func write(in directory: String) throws(FileError) {
        let path = "\(directory)/CACHEDIR.TAG"
        guard FileStatus.of(path) == nil else { return }
        let file = try Descriptor.create(path)
        let bytes = Array(text.utf8)
        try file.write(all: bytes)
    }
}

/// A database that cannot be used makes way for a fresh one.
enum SetAside {
    /// Renames the file and its log, and removes what an earlier accident left, so that accidents do not add up.
    /// - Returns: the new name.
    static func move(_ path: String, now: Timestamp) throws(FileError) -> String {
        let (directory, name) = split(path)
        for old in Paths.names(in: directory) where old.hasPrefix("\(name).corrupt-") { Paths.remove("\(directory)/\(old)") }
        let target = "\(path).corrupt-\(now.milliseconds)"
        try Paths.move(path, to: target)
        if FileStatus.of(path + "-wal") != nil { try Paths.move(path + "-wal", to: target + "-wal") }
        Paths.remove(path + "-shm")
        return target
    }

    private static func split(_ path: String) -> (directory: String, name: String) {
        guard let slash = path.lastIndex(of: "/") else { return (".", path) }
        return (String(path[..<slash]), String(path[path.index(after: slash)...]))
    }
}
