// A consistent copy of the outbox as one archive, while the server runs (docs/storage.md#backup).
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
