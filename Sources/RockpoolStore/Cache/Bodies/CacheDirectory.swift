// Directory handling of the cache: the tag that backup programs honour, the lock, and setting aside a damaged database
// (docs/storage.md#directories).
import Glibc
import RockpoolCore

/// `CACHEDIR.TAG`, by which backup programs skip the directory (bford.info/cachedir).
enum CacheDirectoryTag {
    private static let text = """
        Signature: 8a477f597d28d172789f06886806bc55
        # This directory is Rockpool's cache. It may be deleted at any time.

        """

    /// Creates the tag in an empty directory, or recognises the directory as a Rockpool cache by its tag, or by its database when the tag
    /// is missing: a user may have deleted files in any order. A power failure may leave an empty tag, which is rewritten.
    /// - Throws: `ForeignDirectory`, before anything is changed; `FileError`.
    static func claim(_ directory: String) throws {
        let path = "\(directory)/CACHEDIR.TAG"
        if let size = FileStatus.of(path)?.size, size > 0 {
            let found = size < .kib(4) ? try FileBytes.read(path) : []
            guard String(decoding: found, as: UTF8.self).contains("Rockpool") else {
                throw ForeignDirectory(directory: directory, name: "CACHEDIR.TAG")
            }
            return
        }
        // A power failure during the first start can leave a journal alone.
        let harmless = ["CACHEDIR.TAG", "lost+found", "cache.sqlite-journal"]
        let foreign = Paths.names(in: directory).sorted().first { !harmless.contains($0) }
        if let foreign, FileStatus.of(path) == nil, !hasDatabase(directory) { throw ForeignDirectory(directory: directory, name: foreign) }
        Paths.remove(path)
        let file = try Descriptor.create(path)
        let bytes = Array(text.utf8)
        try file.write(all: bytes)
        // Synced before anything else is created here: after a power failure, the rest must be recognised as Rockpool's.
        try file.synchronize()
        try Paths.synchronizeDirectory(directory)
    }

    /// True if SQLite's header identifies the database as a cache's (sqlite.org/fileformat2.html §1.2).
    private static func hasDatabase(_ directory: String) -> Bool {
        guard let found = try? FileBytes.read("\(directory)/cache.sqlite", from: 68, upTo: 4), found.count == 4 else { return false }
        return found.reduce(0) { $0 << 8 | Int32($1) } == CacheSchema.identity.applicationID
    }

    /// Locks the cache directory for one server: two servers would sweep each other's bodies and checkpoint the same log. The tag is locked
    /// because it always exists.
    /// - Throws: `CacheInUse`.
    static func lock(in directory: String) throws -> CacheLock {
        try lock(try Descriptor("\(directory)/CACHEDIR.TAG", O_RDWR), of: directory)
    }

    /// Locks the directory for a reader that changes nothing; returns nil when there is no tag, and so no possible lock holder.
    static func lockToLook(in directory: String) throws -> CacheLock? {
        let path = "\(directory)/CACHEDIR.TAG"
        return FileStatus.of(path) == nil ? nil : try lock(try Descriptor(path, O_RDONLY), of: directory)
    }

    private static func lock(_ file: consuming Descriptor, of directory: String) throws -> CacheLock {
        guard flock(file.number, LOCK_EX | LOCK_NB) == 0 else { throw CacheInUse(directory: directory) }
        return CacheLock(file)
    }
}

/// A lock on the cache directory, held during this object's lifetime or until `release`.
final class CacheLock: Sendable {
    private let file: Descriptor

    init(_ file: consuming Descriptor) { self.file = file }

    func release() { flock(file.number, LOCK_UN) }
}

/// Thrown when another server uses the cache directory.
package struct CacheInUse: Error, CustomStringConvertible {
    package let directory: String
    package var description: String { "another Rockpool uses the cache directory \(directory); stop it or choose another directory" }
}

/// Thrown when the cache directory is not empty and not a Rockpool cache: its contents would be in danger.
package struct ForeignDirectory: Error, CustomStringConvertible, Equatable {
    package let directory: String
    /// The name of one entry of the directory.
    package let name: String
    package var description: String {
        "\(directory) is not empty and no Rockpool cache (it has \(name)); choose an empty or a new directory as storage.cache_dir"
    }
}

/// Thrown when other users may write into the cache directory and so control what is served from it.
package struct WritableByOthers: Error, CustomStringConvertible, Equatable {
    package let directory: String
    package var description: String { "\(directory) can be written by others; run: chmod go-w '\(directory)'" }
}

/// Moves an unusable database aside, so that a fresh one can be created.
enum SetAside {
    /// Renames the file and its log, and removes databases set aside earlier, so that they do not accumulate.
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
