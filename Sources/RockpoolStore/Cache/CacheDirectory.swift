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

    /// One server per cache directory: two would sweep each other's bodies, and checkpoint one log from two sides. The tag is the
    /// file that is always there.
    /// - Throws: `CacheInUse`.
    static func lock(in directory: String) throws -> CacheLock {
        let file = try Descriptor("\(directory)/CACHEDIR.TAG", O_RDWR)
        guard flock(file.number, LOCK_EX | LOCK_NB) == 0 else { throw CacheInUse(directory: directory) }
        return CacheLock(file)
    }
}

/// The cache directory is held while this lives, until `release`.
final class CacheLock: Sendable {
    private let file: Descriptor

    init(_ file: consuming Descriptor) { self.file = file }

    func release() { flock(file.number, LOCK_UN) }
}

/// Another server has the cache directory.
package struct CacheInUse: Error, CustomStringConvertible {
    package let directory: String
    package var description: String { "another Rockpool uses the cache directory \(directory); stop it or choose another directory" }
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
