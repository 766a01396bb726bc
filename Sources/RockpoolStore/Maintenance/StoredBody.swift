// A stored body, read back and hashed; the one place of a scrub that knows the storage forms (docs/storage.md#scrub).
import Crypto
import FoundationEssentials
import GRDB
import Glibc
import RockpoolCore

/// A body as described by its row.
struct StoredBody: Sendable {
    enum Place: Sendable {
        /// A file of `bodies/` or `blobs/`.
        case file(path: String)
        /// Stored in the row.
        case row(Data)
    }

    enum Verdict: Sendable { case intact, missing, bad }

    /// The name of the body: its SHA-256 as received, or the name that its seal derives from that.
    var hash: [UInt8]
    /// Bytes of the body as received.
    var length: Int64
    /// The coding in which the body is stored.
    var coding: StoredCoding
    /// Bytes in stored form.
    var stored: Int64
    var place: Place

    /// Columns of `body` in `cache.sqlite`, for `init(file:at:)`.
    static let fileColumns = "sha, length, coding, stored"
    /// Columns of `blob` in `data.sqlite`, for the same initialiser: blobs are never deflated, and the size of the file shows a sealed one.
    static let blobColumns = "sha, length, 0, length"
    /// Columns of `entry`, for `init(row:)`.
    static let rowColumns = "body_sha, body_length, coding, body"

    /// Reads `fileColumns`; the reader is at the first of them.
    init(file columns: inout RowReader, at path: ([UInt8]) -> String) throws(UnreadableRow) {
        hash = Array(try columns.next(Data.self))
        length = try columns.next()
        coding = try Self.coding(&columns)
        stored = try columns.next()
        place = .file(path: path(hash))
    }

    /// Reads `rowColumns`; the reader is at the first of them.
    init(row columns: inout RowReader) throws(UnreadableRow) {
        hash = Array(try columns.next(Data.self))
        length = try columns.next()
        coding = try Self.coding(&columns)
        let bytes = try columns.next(Data.self)
        (stored, place) = (Int64(bytes.count), .row(bytes))
    }

    /// The blob as it lies there: sealed where its file's size says so.
    func asBlob() -> StoredBody {
        guard case .file(let path) = place, FileStatus.of(path)?.size == SealedChunks.size(of: length) else { return self }
        var blob = self
        (blob.coding, blob.stored) = (.sealed, SealedChunks.size(of: length))
        return blob
    }

    private static func coding(_ columns: inout RowReader) throws(UnreadableRow) -> StoredCoding {
        guard let coding = StoredCoding(rawValue: try columns.next()) else { throw UnreadableRow(column: 2) }
        return coding
    }

    /// Returns the SHA-256 of the stored body after decoding; nil when its length differs from its row. Blocks.
    /// - Throws: `SealBroken`.
    /// - Throws: `FileError`; ENOENT when it does not exist.
    private func storedDigest(_ seal: BodySeal?) throws -> [UInt8]? {
        let seal = coding.isSealed ? seal : nil
        switch place {
        case .row(let bytes): return digest(of: try seal?.open(Array(bytes)) ?? Array(bytes))
        case .file(let path):
            guard let status = FileStatus.of(path) else { throw FileError(call: "lstat", path: path, code: errno) }
            guard status.isFile, status.size == stored else { return nil }
            let sealed = try seal.map { try SealedFile(path, $0) }
            if coding.isDeflated { return digest(of: try sealed?.bytes() ?? FileBytes.read(path)) }
            return try sealed?.digest() ?? Digest.ofFile(path)
        }
    }

    private func digest(of bytes: [UInt8]) -> [UInt8]? { coding.expanded(bytes, to: Int(length)).map { Array(SHA256.hash(data: $0)) } }

    /// Compares the stored body with its row. Blocks.
    /// - Parameter seal: nil where no key is available; a sealed body then counts as intact.
    /// - Throws: `FileError` when the disk cannot be read; the body must be kept in that case.
    func verdict(_ seal: BodySeal?) throws -> Verdict {
        if coding.isSealed, seal == nil { return .intact }
        do {
            guard let digest = try storedDigest(seal) else { return .bad }
            return digest == hash || seal?.isName(hash, of: digest) == true ? .intact : .bad
        } catch is SealBroken {
            return .bad
        } catch let error as FileError where error.code == ENOENT {
            return .missing
        }
    }
}

/// `bodies/` on the disk, compared with the rows one of its 256 directories at a time (docs/storage.md#cleanup step 4). A body file has a
/// name of 64 hexadecimal digits and is in the directory named by the first two.
struct BodyShards: Sendable {
    let root: String

    /// The differences between one directory and the rows.
    struct Difference: Sendable {
        /// Files that no row references.
        var unnamed: [[UInt8]] = []
        /// Bodies of rows without a file.
        var missing: [[UInt8]] = []
        /// Files that are not body files, as `shard/name`.
        var foreign: [String] = []
    }

    /// Returns the directories that contain bodies, as two hexadecimal digits each. Blocks.
    func shards() -> [String] { Paths.names(in: root).filter(isShard).sorted() }

    /// Returns the names under `bodies/` that are none of the 256 directories. Blocks.
    func foreign() -> [String] { Paths.names(in: root).filter { !isShard($0) } }

    /// Returns the bodies in a shard, and the other files in it as `shard/name`. Blocks.
    func names(inShard shard: String) -> (bodies: [[UInt8]], foreign: [String]) {
        // A symbolic link to another directory is not followed.
        let names = isShard(shard) ? Paths.names(in: "\(root)/\(shard)") : []
        var (bodies, foreign): ([[UInt8]], [String]) = ([], [])
        for name in names {
            if let hash = Digest.bytes(name), Digest.hex(hash) == name, name.hasPrefix(shard) {
                bodies.append(hash)
            } else {
                foreign.append("\(shard)/\(name)")
            }
        }
        return (bodies, foreign)
    }

    /// Returns the range of a shard's hashes for SQL: the first is inclusive, the second exclusive.
    static func bounds(of shard: UInt8) -> StatementArguments {
        [[shard].data, (shard == .max ? [UInt8](repeating: .max, count: 33) : [shard + 1]).data]
    }

    private func isShard(_ name: String) -> Bool {
        name.utf8.count == 2 && name.utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
            && FileStatus.of("\(root)/\(name)")?.isDirectory == true
    }

    /// Lists the files before reading the rows, so that a body stored meanwhile is in neither result. Blocks.
    func difference(in shard: UInt8, reader: any DatabaseReader) throws -> Difference {
        var found = Difference()
        let directory = "\(root)/\(Digest.hex([shard]))"
        let (bodies, foreign) = names(inShard: Digest.hex([shard]))
        found.foreign = foreign
        let files = Set(bodies)
        let named = try reader.read { db in
            let statement = try db.cachedStatement(sql: "SELECT sha FROM body WHERE sha >= ? AND sha < ?")
            return Set(try Data.fetchAll(statement, arguments: Self.bounds(of: shard)).map { Array($0) })
        }
        found.unnamed = files.subtracting(named).sorted(by: { $0.lexicographicallyPrecedes($1) })
        found.missing = named.subtracting(files).filter { FileStatus.of("\(directory)/\(Digest.hex($0))") == nil }
        return found
    }
}
