// A body as a store holds it, read back and hashed: the one place of a scrub that knows how it lies there (storage.md §3).
import Crypto
import FoundationEssentials
import GRDB
import Glibc
import RockpoolCore

/// A body, and what its row says of it.
struct StoredBody: Sendable {
    enum Place: Sendable {
        /// A file of `bodies/` or `blobs/`.
        case file(path: String)
        /// In the row.
        case row(Data)
    }

    enum Verdict: Sendable { case intact, missing, bad }

    /// Its name: SHA-256 of it as its origin sent it, or what its seal makes of that.
    var hash: [UInt8]
    /// Bytes of it as its origin sent it.
    var length: Int64
    /// How it lies there.
    var coding: StoredCoding
    /// Bytes of what lies there.
    var stored: Int64
    var place: Place

    /// Of `body` in `cache.sqlite`, for `init(file:at:)`.
    static let fileColumns = "sha, length, coding, stored"
    /// Of `blob` in `data.sqlite`, for the same: nothing is deflated there, and its file's size tells a sealed one.
    static let blobColumns = "sha, length, 0, length"
    /// Of `entry`, for `init(row:)`.
    static let rowColumns = "body_sha, body_length, coding, body"

    /// Reads on from the first of `fileColumns`.
    init(file columns: inout RowReader, at path: ([UInt8]) -> String) throws(UnreadableRow) {
        hash = Array(try columns.next(Data.self))
        length = try columns.next()
        coding = try Self.coding(&columns)
        stored = try columns.next()
        place = .file(path: path(hash))
    }

    /// Reads on from the first of `rowColumns`.
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

    /// SHA-256 of what is stored, as its origin sent it; nil when it has not the length that its row says, or its seal is broken. Blocks.
    /// - Throws: `FileError`; ENOENT when it is not there.
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

    /// Whether it is what its row says. Blocks.
    /// - Parameter seal: nil where no key is at hand: then a sealed body is taken for intact.
    /// - Throws: `FileError` when the disk does not say: that is no reason to give a body up.
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
