// A consistent copy of the outbox as one archive, made while the server runs, and the way back to a state directory
// (docs/storage.md#backup).
import Crypto
import FoundationEssentials
import GRDB
import Glibc
import RockpoolCore

extension DataStore {
    /// The bytes read and given at once.
    private static let pieceBytes = Int.kib(256)

    /// Gives an archive of the outbox as of now, piece by piece: the manifest, the database, its blobs, the key of identities, the switch and
    /// what was purged; with `keys` also the certificate authority and the admin token.
    ///
    /// The database is copied in one transaction, and the blobs are held by hard links, so that writes go on meanwhile.
    /// - Parameter configuration: the text of the configuration file.
    /// - Throws: `FileError`, `DatabaseError`, the errors of `write`.
    package func backup(
        keys: Bool, configuration: [UInt8]?, version: String, write: ([UInt8]) async throws -> Void
    ) async throws {
        let prefix = "\(directory)/blobs/tmp/backup-\(UInt64.random(in: .min ... .max))-"
        defer {
            let folder = "\(directory)/blobs/tmp"
            for name in Paths.names(in: folder) where "\(folder)/\(name)".hasPrefix(prefix) { Paths.remove("\(folder)/\(name)") }
        }
        let staged = try await stage(prefix, keys: keys, configuration: configuration)
        var manifest = BackupManifest(
            format: BackupManifest.currentFormat, version: version, schema: DataSchema.identity.migrations.count,
            createdAt: RFC3339.format(clock()), keys: keys, files: [])
        for file in staged {
            let (path, size) = (file.path, FileStatus.of(file.path)?.size ?? 0)
            let sum = try await lanes.run(0) { Digest.hex(try Digest.ofFile(path)) }
            manifest.files.append(.init(name: file.name, bytes: size, sha256: sum))
        }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        let text = Array(try encoder.encode(manifest))
        try await write(Self.entry(BackupManifest.name, size: Int64(text.count)) + text)
        try await write([UInt8](repeating: 0, count: TarHeader.padding(after: Int64(text.count))))
        for (file, listed) in zip(staged, manifest.files) { try await give(file.path, as: listed, write: write) }
        try await write([UInt8](repeating: 0, count: 2 * TarHeader.block))
    }

    private static func entry(_ name: String, size: Int64) -> [UInt8] { TarHeader(name: name, size: size).bytes }

    /// Copies the database, links every blob, and returns the files of the archive.
    private func stage(_ prefix: String, keys: Bool, configuration: [UInt8]?) async throws -> [(name: String, path: String)] {
        let (directory, database) = (directory, prefix + "data.sqlite")
        // Before and after the copy: a blob that the copy names was there at one of both times.
        try await lanes.run(0) { Self.linkBlobs(of: directory, to: prefix) }
        try await self.database.pool.writeWithoutTransaction { try $0.execute(sql: "VACUUM INTO ?", arguments: [database]) }
        try await lanes.run(0) { Self.linkBlobs(of: directory, to: prefix) }
        if let configuration {
            let file = try Descriptor.create(prefix + "rockpool.yaml")
            try file.write(all: configuration)
        }
        return try await lanes.run(0) {
            var files = [(name: "data.sqlite", path: database)]
            let named = try Self.named(inCopy: database)
            for name in named.map(Digest.hex) {
                guard FileStatus.of(prefix + name) != nil else {
                    throw FileError(call: "link", path: "\(directory)/blobs/\(name)", code: ENOENT)
                }
                files.append((name: "blobs/\(name)", path: prefix + name))
            }
            let others =
                ["install-key", "network.json"]
                + Paths.names(in: directory).filter { $0.hasPrefix("purged-") && $0.hasSuffix(".jsonl") }.sorted()
                + (keys ? ["admin-token", "ca/ca.key", "ca/ca.pem"] : [])
            for name in others where FileStatus.of("\(directory)/\(name)")?.isFile == true {
                files.append((name: name, path: "\(directory)/\(name)"))
            }
            if FileStatus.of(prefix + "rockpool.yaml") != nil { files.append((name: "rockpool.yaml", path: prefix + "rockpool.yaml")) }
            return files
        }
    }

    /// Returns the blobs of a copy, after the live writes in it are deleted: this server still sees to them.
    private static func named(inCopy path: String) throws -> [Data] {
        let copy = try DatabaseQueue(path: path)
        try copy.writeWithoutTransaction { try $0.execute(sql: "PRAGMA secure_delete = ON") }
        let named = try copy.write { db in
            try LiveWriteRow.delete(LiveWriteRow.all(in: db), in: db)
            return try Data.fetchAll(db, sql: "SELECT sha FROM blob ORDER BY sha")
        }
        try copy.close()
        return named
    }

    /// A blob that is gone meanwhile is not linked, nor one that is linked already.
    private static func linkBlobs(of directory: String, to prefix: String) {
        for name in Paths.names(in: "\(directory)/blobs") where Digest.bytes(name) != nil {
            _ = unsafe Glibc.link("\(directory)/blobs/\(name)", prefix + name)
        }
    }

    private func give(_ path: String, as file: BackupManifest.File, write: ([UInt8]) async throws -> Void) async throws {
        try await write(Self.entry(file.name, size: file.bytes))
        var offset: Int64 = 0
        while offset < file.bytes {
            let (start, count) = (offset, Int(min(Int64(Self.pieceBytes), file.bytes - offset)))
            let piece = try await lanes.run(0) { try FileBytes.read(path, from: start, upTo: count) }
            guard !piece.isEmpty else { throw FileError(call: "read", path: path, code: EIO) }
            offset += Int64(piece.count)
            try await write(piece)
        }
        try await write([UInt8](repeating: 0, count: TarHeader.padding(after: file.bytes)))
    }
}

// MARK: - Restoring

/// The reason why a backup is not restored; nothing was changed.
package enum RestoreRefusal: Error, Hashable, CustomStringConvertible {
    case notEmpty(String)
    case noBackup(String)
    case newerSchema(found: Int, known: Int)
    case damaged(String)

    package var description: String {
        switch self {
        case .notEmpty(let path): "\(path) holds an outbox; restore into another directory (--state-dir), or move it away first"
        case .noBackup(let why): "this is no backup of Rockpool: \(why)"
        case .newerSchema(let found, let known):
            "the backup has schema \(found), this Rockpool knows up to \(known); restore it with the newer version"
        case .damaged(let why): "the backup is damaged: \(why)"
        }
    }
}

/// Reads one archive into an empty state directory.
package struct Restore: ~Copyable {
    private static let pieceBytes = Int.kib(256)

    private let source: Descriptor
    private let directory: String
    private let staging: String

    /// - Throws: `FileError` if the file cannot be opened.
    package init(from path: String, into directory: String) throws {
        source = try Descriptor(path, O_RDONLY)
        self.directory = directory
        staging = directory + "/.restore"
    }

    /// Restores the archive and returns its manifest. The directory is taken only when every file has arrived with its sum.
    /// - Throws: `RestoreRefusal`, `FileError`, `DataStoreError.locked`.
    package consuming func run() throws -> BackupManifest {
        try Paths.makeDirectories(directory)
        let lock = try StoreLock.acquire(directory)
        defer { lock.release() }
        if let status = FileStatus.of(directory + "/data.sqlite"), status.size > 0 { throw RestoreRefusal.notEmpty(directory) }
        try? FileManager.default.removeItem(atPath: staging)
        try Paths.makeDirectory(staging)
        defer { try? FileManager.default.removeItem(atPath: staging) }
        let manifest = try readManifest()
        for folder in ["blobs", "ca"] { try Paths.makeDirectory("\(staging)/\(folder)") }
        for file in manifest.files { try take(file) }
        try place(manifest)
        return manifest
    }

    private borrowing func readManifest() throws -> BackupManifest {
        guard let header = TarHeader(try piece(TarHeader.block)[...]), header.name == BackupManifest.name, header.size < Int64.mib(64)
        else {
            throw RestoreRefusal.noBackup("it does not begin with \(BackupManifest.name)")
        }
        let bytes = try piece(Int(header.size))
        _ = try piece(TarHeader.padding(after: header.size))
        guard let manifest = try? JSONDecoder().decode(BackupManifest.self, from: Data(bytes)) else {
            throw RestoreRefusal.noBackup("\(BackupManifest.name) cannot be read")
        }
        guard manifest.format == BackupManifest.currentFormat, manifest.schema <= DataSchema.identity.migrations.count else {
            throw RestoreRefusal.newerSchema(found: manifest.schema, known: DataSchema.identity.migrations.count)
        }
        guard manifest.files.allSatisfy({ BackupManifest.isKnown($0.name) }), manifest.files.contains(where: { $0.name == "data.sqlite" })
        else { throw RestoreRefusal.noBackup("it names files that no backup has") }
        return manifest
    }

    private borrowing func take(_ file: BackupManifest.File) throws {
        guard let header = TarHeader(try piece(TarHeader.block)[...]), header.name == file.name, header.size == file.bytes else {
            throw RestoreRefusal.damaged("\(file.name) is missing")
        }
        let target = try Descriptor.create("\(staging)/\(file.name)")
        var (rest, hash) = (file.bytes, SHA256())
        while rest > 0 {
            let bytes = try piece(Int(min(rest, Int64(Self.pieceBytes))))
            hash.update(data: bytes)
            try target.write(all: bytes)
            rest -= Int64(bytes.count)
        }
        guard Digest.hex(Array(hash.finalize())) == file.sha256 else { throw RestoreRefusal.damaged("\(file.name) has another sum") }
        if file.name == "ca/ca.pem" { fchmod(target.number, 0o644) }
        try target.synchronize()
        _ = try piece(TarHeader.padding(after: file.bytes))
    }

    /// Moves the files to their places, the database last: with it the directory holds an outbox.
    private borrowing func place(_ manifest: BackupManifest) throws {
        for folder in ["blobs", "ca"] { try Paths.makeDirectory("\(directory)/\(folder)") }
        let names = manifest.files.map(\.name).filter { $0 != "data.sqlite" } + ["data.sqlite"]
        for name in names { try Paths.move("\(staging)/\(name)", to: "\(directory)/\(name)") }
        for folder in ["blobs", "ca", "."] { try Paths.synchronizeDirectory("\(directory)/\(folder)") }
    }

    /// Reads exactly this number of bytes.
    private borrowing func piece(_ count: Int) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var filled = 0
        while filled < count {
            let read = try unsafe bytes.withUnsafeMutableBytes {
                try unsafe source.read(into: UnsafeMutableRawBufferPointer(rebasing: $0[filled...]))
            }
            guard read > 0 else { throw RestoreRefusal.damaged("it breaks off") }
            filled += read
        }
        return bytes
    }
}

/// The contents of a backup.
package struct BackupManifest: Codable, Hashable, Sendable {
    package struct File: Codable, Hashable, Sendable {
        package var name: String
        package var bytes: Int64
        package var sha256: String
    }

    static let name = "manifest.json"
    /// The form of the archive.
    static let currentFormat = 1

    package var format: Int
    /// The version of the program that made it.
    package var version: String
    /// The schema of `data.sqlite`.
    package var schema: Int
    package var createdAt: String
    /// True if it holds the certificate authority and the admin token.
    package var keys: Bool
    package var files: [File]

    /// The names that a restore writes: nothing else of an archive reaches the disk.
    static func isKnown(_ name: String) -> Bool {
        if ["data.sqlite", "install-key", "network.json", "admin-token", "ca/ca.key", "ca/ca.pem", "rockpool.yaml"].contains(name) {
            return true
        }
        if name.hasPrefix("blobs/") { return Digest.bytes(String(name.dropFirst(6))) != nil }
        return name.hasPrefix("purged-") && name.hasSuffix(".jsonl") && !name.contains("/")
    }
}

/// One entry of a tar archive, a regular file (POSIX.1-1988 ustar, IEEE Std 1003.1 *pax*): the form of a backup, so that any tar can read
/// it.
struct TarHeader: Hashable, Sendable {
    static let block = 512
    var name: String
    var size: Int64

    /// Bytes after the content up to the next block.
    static func padding(after size: Int64) -> Int { Int((Int64(block) - size % Int64(block)) % Int64(block)) }

    /// The block of the header. The name has at most 100 bytes, and the file less than 8 GiB.
    var bytes: [UInt8] {
        var block = [UInt8](repeating: 0, count: Self.block)
        func put(_ text: String, at offset: Int) {
            for (index, byte) in text.utf8.enumerated() { block[offset + index] = byte }
        }
        func octal(_ value: Int64, digits: Int) -> String {
            let text = String(value, radix: 8)
            return String(repeating: "0", count: max(0, digits - text.count)) + text
        }
        put(name, at: 0)
        put(octal(0o600, digits: 7), at: 100)
        put(octal(0, digits: 7), at: 108)
        put(octal(0, digits: 7), at: 116)
        put(octal(size, digits: 11), at: 124)
        put(octal(0, digits: 11), at: 136)
        put("        ", at: 148)
        put("0", at: 156)
        put("ustar", at: 257)
        put("00", at: 263)
        put(octal(block.reduce(0) { $0 + Int64($1) }, digits: 6) + "\0 ", at: 148)
        return block
    }

    init(name: String, size: Int64) {
        self.name = name
        self.size = size
    }

    /// Nil for a block that is no header of a regular file, or whose sum is wrong.
    init?(_ block: ArraySlice<UInt8>) {
        let block = Array(block)
        guard block.count == Self.block else { return nil }
        func text(at offset: Int, _ count: Int) -> String {
            String(decoding: block[offset..<offset + count].prefix { $0 != 0 && $0 != UInt8(ascii: " ") }, as: UTF8.self)
        }
        let sum = block.enumerated().reduce(Int64(0)) { $0 + ((148..<156).contains($1.offset) ? 32 : Int64($1.element)) }
        guard Int64(text(at: 148, 8), radix: 8) == sum, block[156] == UInt8(ascii: "0") || block[156] == 0,
            let size = Int64(text(at: 124, 12), radix: 8)
        else { return nil }
        (name, self.size) = (text(at: 0, 100), size)
    }
}
