// Two small customs of cache directories: the tag that backups heed, and what becomes of a damaged database (storage.md §1).
import Glibc
import RockpoolCore

/// `CACHEDIR.TAG`, by which backup programs skip the directory (bford.info/cachedir).
enum CacheDirectoryTag {
    private static let text = """
        Signature: 8a477f597d28d172789f06886806bc55
        # This directory is Rockpool's cache. It may be deleted at any time.

        """

    /// Makes an empty directory ours, or finds it so by its tag, or by its database where the tag is gone: what was deleted by others may
    /// be in any order. A power cut may leave the tag without its text.
    /// - Throws: `ForeignDirectory`, before anything is changed; `FileError`.
    static func claim(_ directory: String) throws {
        let path = "\(directory)/CACHEDIR.TAG"
        if let size = FileStatus.of(path)?.size, size > 0 {
            let found = size < 4096 ? try FileBytes.read(path) : []
            guard String(decoding: found, as: UTF8.self).contains("Rockpool") else {
                throw ForeignDirectory(directory: directory, name: "CACHEDIR.TAG")
            }
            return
        }
        // A journal alone is what a power cut leaves of a first start.
        let harmless = ["CACHEDIR.TAG", "lost+found", "cache.sqlite-journal"]
        let foreign = Paths.names(in: directory).sorted().first { !harmless.contains($0) }
        if let foreign, FileStatus.of(path) == nil, !hasDatabase(directory) { throw ForeignDirectory(directory: directory, name: foreign) }
        Paths.remove(path)
        let file = try Descriptor.create(path)
        let bytes = Array(text.utf8)
        try file.write(all: bytes)
        // Before anything else is made here: what a power cut leaves of the rest must be known for ours.
        try file.synchronize()
        try Paths.synchronizeDirectory(directory)
    }

    /// Whether SQLite's header says that the database is a cache's (sqlite.org/fileformat2.html §1.2).
    private static func hasDatabase(_ directory: String) -> Bool {
        guard let found = try? FileBytes.read("\(directory)/cache.sqlite", from: 68, upTo: 4), found.count == 4 else { return false }
        return found.reduce(0) { $0 << 8 | Int32($1) } == CacheSchema.identity.applicationID
    }

    /// One server per cache directory: two would sweep each other's bodies, and checkpoint one log from two sides. The tag is the
    /// file that is always there.
    /// - Throws: `CacheInUse`.
    static func lock(in directory: String) throws -> CacheLock {
        try lock(try Descriptor("\(directory)/CACHEDIR.TAG", O_RDWR), of: directory)
    }

    /// The same for who only looks; nil when there is no tag, and so nobody who could hold it.
    static func lockToLook(in directory: String) throws -> CacheLock? {
        let path = "\(directory)/CACHEDIR.TAG"
        return FileStatus.of(path) == nil ? nil : try lock(try Descriptor(path, O_RDONLY), of: directory)
    }

    private static func lock(_ file: consuming Descriptor, of directory: String) throws -> CacheLock {
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

/// The cache directory holds something, and it is not a cache of ours: what lies there would be in danger.
package struct ForeignDirectory: Error, CustomStringConvertible, Equatable {
    package let directory: String
    /// One of the things in it.
    package let name: String
    package var description: String {
        "\(directory) is not empty and no Rockpool cache (it has \(name)); choose an empty or a new directory as storage.cache_dir"
    }
}

/// Others may write into the cache directory, and so choose what is served from it.
package struct WritableByOthers: Error, CustomStringConvertible, Equatable {
    package let directory: String
    package var description: String { "\(directory) can be written by others; run: chmod go-w '\(directory)'" }
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
