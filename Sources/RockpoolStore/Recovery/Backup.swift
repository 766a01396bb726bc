// A backup becomes a state directory again (docs/storage.md#backup).
import Crypto
import FoundationEssentials
import Glibc
import RockpoolCore

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
