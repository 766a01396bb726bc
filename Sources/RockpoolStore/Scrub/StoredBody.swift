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

    /// SHA-256 of it as its origin sent it.
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
    /// Of `blob` in `data.sqlite`, for the same: nothing is deflated there.
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

    private static func coding(_ columns: inout RowReader) throws(UnreadableRow) -> StoredCoding {
        guard let coding = StoredCoding(rawValue: try columns.next()) else { throw UnreadableRow(column: 2) }
        return coding
    }

    /// SHA-256 of what is stored, as its origin sent it; nil when it has not the length that its row says. Blocks.
    /// - Throws: `FileError`; ENOENT when it is not there.
    func storedDigest() throws(FileError) -> [UInt8]? {
        switch place {
        case .row(let bytes): return digest(of: Array(bytes))
        case .file(let path):
            guard let status = FileStatus.of(path) else { throw FileError(call: "lstat", path: path, code: errno) }
            guard status.isFile, status.size == stored else { return nil }
            return coding == .plain ? try Digest.ofFile(path) : digest(of: try FileBytes.read(path))
        }
    }

    private func digest(of bytes: [UInt8]) -> [UInt8]? { coding.expanded(bytes, to: Int(length)).map { Array(SHA256.hash(data: $0)) } }

    /// Whether it is what its row says. Blocks.
    /// - Throws: `FileError` when the disk does not say: that is no reason to give a body up.
    func verdict() throws(FileError) -> Verdict {
        do throws(FileError) {
            return try storedDigest() == hash ? .intact : .bad
        } catch {
            guard error.code == ENOENT else { throw error }
            return .missing
        }
    }
}
