// The files of `bodies/`: their names, their readers, and when they may be unlinked (docs/storage.md#what-is-stored-where,
// docs/storage.md#eviction).
import FoundationEssentials
import GRDB
import Glibc
package import NIOCore
import RockpoolCore
import Synchronization

/// Body files named by SHA-256 in 256 directories, which are created and removed as needed. Files are named and unlinked on the writer's
/// thread only, so that no two of these operations race. Other files in there are left alone.
final class BodyFiles: Sendable {
    private struct State {
        var readers: [[UInt8]: Int] = [:]
        /// Files that may have no row (any more), with the bytes that the ledger counts for them; checked after the commit.
        var suspects: [[UInt8]: Int64] = [:]
        /// Bytes of the suspects that are kept only by their readers.
        var leavingBytes: Int64 = 0
        /// The file being unlinked; no reader may open it.
        var leaving: [UInt8]?
        /// Files hashed since the start and found intact.
        var verified: Set<[UInt8]> = []
        /// Allocated bytes of each of the 256 directories and of `bodies/` itself.
        var directories: [String: Int64] = [:]
    }

    let root: String
    private let footprint: Footprint
    private let state = Mutex(State())

    init(root: String, footprint: Footprint) {
        self.root = root
        self.footprint = footprint
        for path in [root] + Paths.names(in: root).map({ "\(root)/\($0)" }) { noteDirectory(path) }
    }

    func path(of hash: [UInt8]) -> String { "\(directory(of: hash))/\(Digest.hex(hash))" }

    private func directory(of hash: [UInt8]) -> String { "\(root)/\(Digest.hex(hash.prefix(1)))" }

    /// Renames a finished temporary to its final name and moves its bytes from `reserved` to used; its row must be written in this
    /// transaction.
    /// - Parameter counted: the bytes that the ledger counts for the body by its row, if it has a row and only the file is missing.
    /// - Returns: the bytes that the ledger counts for the file now, to be stored in the row: exactly these are released when the file is
    ///   removed, whatever the disk reports then.
    func adopt(_ file: SpoolFile, hash: [UInt8], reserved: Int64, counted: Int64) throws -> Int64 {
        let actual = file.allocated
        try Paths.makeDirectory(directory(of: hash))
        try Paths.move(file.path, to: path(of: hash))
        file.release()
        let replaced = state.withLock { state in
            state.verified.insert(hash)
            return state.suspects.updateValue(actual, forKey: hash) ?? counted
        }
        footprint.settle(reserved: reserved, actual: actual - replaced)
        noteDirectory(root)
        noteDirectory(directory(of: hash))
        return actual
    }

    /// Notes a body that loses its last row if this transaction is committed.
    /// - Parameter counted: the bytes counted by its row.
    func suspect(_ hash: [UInt8], counted: Int64) { state.withLock { $0.suspects[hash] = counted } }

    /// Unlinks the suspects that no committed row references and no reader holds; a suspect with a row is no longer a suspect. Runs outside
    /// any transaction.
    func unlinkUnused(in db: Database) {
        var leavingBytes: Int64 = 0
        for (hash, counted) in state.withLock(\.suspects) {
            guard let rows = try? Self.counted(hash, in: db) else { continue }
            if let named = rows.first {
                footprint.addFiles(named - counted)
            } else if unlink(hash) != nil {
                footprint.addFiles(-counted)
            } else {
                leavingBytes += counted
                continue
            }
            state.withLock { _ = $0.suspects.removeValue(forKey: hash) }
        }
        state.withLock { $0.leavingBytes = leavingBytes }
    }

    /// Unlinks files that no row references and the ledger has never counted: a crash between rename and commit leaves them. Runs on the
    /// writer's thread, outside any transaction, so that bodies stored since the files were listed are skipped.
    /// - Returns: how many files were removed.
    func removeUnnamed(_ hashes: [[UInt8]], in db: Database) -> Int {
        hashes.count { hash in
            guard !isAwaited(hash), FileStatus.of(path(of: hash))?.isFile == true, let rows = try? Self.counted(hash, in: db), rows.isEmpty
            else { return false }
            return unlink(hash) ?? false
        }
    }

    /// True if the file is about to be unlinked or to get its row.
    func isAwaited(_ hash: [UInt8]) -> Bool { state.withLock { $0.suspects[hash] != nil } }

    private static func counted(_ hash: [UInt8], in db: Database) throws -> [Int64] {
        try Int64.fetchAll(try db.cachedStatement(sql: "SELECT allocated FROM body WHERE sha = ?"), arguments: [hash.data])
    }

    /// - Returns: true if the file existed; nil when it stays, because it is being read or the file system refuses.
    private func unlink(_ hash: [UInt8]) -> Bool? {
        let isUnread = state.withLock { state in
            guard state.readers[hash] == nil else { return false }
            state.leaving = hash
            state.verified.remove(hash)
            return true
        }
        guard isUnread else { return nil }
        defer { state.withLock { $0.leaving = nil } }
        let wasThere = Paths.remove(path(of: hash))
        guard wasThere || errno == ENOENT else { return nil }
        // The directory is removed with its last file; rmdir fails otherwise.
        if unsafe rmdir(directory(of: hash)) == 0 || errno == ENOENT { noteDirectory(directory(of: hash)) }
        return wasThere
    }

    /// Bytes of files that have no row any more and are unlinked when their readers finish.
    var leavingBytes: Int64 { state.withLock(\.leavingBytes) }

    /// The hashes of the files being read now.
    var beingRead: Set<[UInt8]> { state.withLock { Set($0.readers.keys) } }

    /// - Parameter whenUnused: called when the last reader of a suspect has finished.
    /// - Returns: nil when the file is being unlinked.
    func lease(_ hash: [UInt8], whenUnused: @escaping @Sendable () -> Void) -> BodyLease? {
        let isThere = state.withLock { state in
            guard state.leaving != hash else { return false }
            state.readers[hash, default: 0] += 1
            return true
        }
        guard isThere else { return nil }
        return BodyLease { [self] in
            let isDue = state.withLock { state in
                let left = (state.readers[hash] ?? 1) - 1
                state.readers[hash] = left > 0 ? left : nil
                return left <= 0 && state.suspects[hash] != nil
            }
            if isDue { whenUnused() }
        }
    }

    /// Returns the content of the file; nil when it does not exist, or its seal is broken.
    /// - Parameter seal: opens a sealed body; nil for any other.
    /// - Throws: `FileError` when it cannot be read.
    func bytes(of hash: [UInt8], seal: BodySeal?) throws -> [UInt8]? {
        do {
            return try seal.map { try SealedFile(path(of: hash), $0).bytes() } ?? FileBytes.read(path(of: hash))
        } catch is SealBroken {
            return nil
        } catch let error as FileError where error.code == ENOENT {
            return nil
        }
    }

    /// True if the file exists and its content matches its name; hashed once per run. Only for bodies that are not deflated.
    /// - Parameter seal: opens a sealed body; nil for any other.
    /// - Throws: `FileError` when the disk cannot be read; the body is kept in that case.
    func isIntact(_ hash: [UInt8], length: Int64, seal: BodySeal?) throws -> Bool {
        guard let status = FileStatus.of(path(of: hash)) else {
            guard errno == ENOENT else { throw FileError(call: "lstat", path: path(of: hash), code: errno) }
            return false
        }
        guard status.size == (seal == nil ? length : SealedChunks.size(of: length)) else { return false }
        if state.withLock({ $0.verified.contains(hash) }) { return true }
        guard try isNamedRight(hash, seal: seal) else { return false }
        state.withLock { state in
            if state.verified.count > 100_000 { state.verified.removeAll() }
            state.verified.insert(hash)
        }
        return true
    }

    private func isNamedRight(_ hash: [UInt8], seal: BodySeal?) throws -> Bool {
        guard let seal else { return try Digest.ofFile(path(of: hash)) == hash }
        do { return seal.isName(hash, of: try SealedFile(path(of: hash), seal).digest()) } catch is SealBroken { return false }
    }

    /// Clears the verified state: the next reader hashes the file again.
    func doubt(_ hash: [UInt8]) { state.withLock { _ = $0.verified.remove(hash) } }

    /// True if the file was hashed or stored since it was last doubted.
    func isVerified(_ hash: [UInt8]) -> Bool { state.withLock { $0.verified.contains(hash) } }

    /// Returns the bytes that the ledger counts for suspects (files without a row, kept by their readers), of one shard or of all.
    func suspectBytes(inShard shard: UInt8? = nil) -> Int64 {
        state.withLock { $0.suspects.reduce(0) { shard == nil || $1.key.first == shard ? $0 + $1.value : $0 } }
    }

    private func noteDirectory(_ path: String) {
        let allocated = FileStatus.of(path)?.allocated ?? 0
        let before = state.withLock { state in
            defer { state.directories[path] = allocated > 0 ? allocated : nil }
            return state.directories[path] ?? 0
        }
        if allocated != before { footprint.addFixed(allocated - before) }
    }
}

/// Keeps a body's file on the disk while it is being read.
package final class BodyLease: Sendable {
    private let end: @Sendable () -> Void

    init(end: @escaping @Sendable () -> Void) { self.end = end }

    deinit { end() }
}

/// A body with a verified checksum, or a slice of one.
package enum CachedBody: Sendable {
    case bytes(ByteBuffer)
    /// `length` bytes from `offset`, to be opened during the lifetime of the lease, which keeps the file from being unlinked.
    case file(path: String, offset: Int64, length: Int64, lease: BodyLease)
    /// These bytes of a body that lies sealed; read with `CacheStore.read(_:of:)`.
    case sealed(SealedFile, Range<Int64>, lease: BodyLease)

    /// Length in bytes.
    package var length: Int64 {
        switch self {
        case .bytes(let buffer): Int64(buffer.readableBytes)
        case .file(_, _, let length, _): length
        case .sealed(_, let range, _): Int64(range.count)
        }
    }

    /// Returns the bytes at these positions, counted from the first byte of this body; nothing is read or copied (RFC 9110 §14.1.2).
    /// - Returns: nil when the range exceeds the body.
    package func slice(_ range: Range<Int64>) -> CachedBody? {
        guard range.lowerBound >= 0, range.upperBound <= length else { return nil }
        switch self {
        case .bytes(let buffer):
            return buffer.getSlice(at: buffer.readerIndex + Int(range.lowerBound), length: range.count).map(CachedBody.bytes)
        case .file(let path, let offset, _, let lease):
            return .file(path: path, offset: offset + range.lowerBound, length: Int64(range.count), lease: lease)
        case .sealed(let file, let whole, let lease):
            return .sealed(file, whole.lowerBound + range.lowerBound..<whole.lowerBound + range.upperBound, lease: lease)
        }
    }
}

/// The row of a body file, without its key and its reference count.
struct BodyRow: Equatable, Sendable {
    /// Bytes of the body as it was received.
    var length: Int64
    /// Bytes that the ledger counts for the file.
    var allocated: Int64
    var coding: StoredCoding
    /// Bytes of the file.
    var stored: Int64

    /// - Throws: `DatabaseError`, `UnreadableRow`.
    static func fetch(_ hash: [UInt8], in db: Database) throws -> BodyRow? {
        let statement = try db.cachedStatement(sql: "SELECT length, allocated, coding, stored FROM body WHERE sha = ?")
        return try Row.fetchOne(statement, arguments: [hash.data]).map { row in
            var columns = RowReader(row)
            let (length, allocated): (Int64, Int64) = (try columns.next(), try columns.next())
            guard let coding = StoredCoding(rawValue: try columns.next()) else { throw UnreadableRow(column: 2) }
            return BodyRow(length: length, allocated: allocated, coding: coding, stored: try columns.next())
        }
    }

    /// - Parameter known: the existing row; its file was deleted or truncated by another program.
    func write(as hash: [UInt8], replacing known: BodyRow?, in db: Database) throws {
        guard let known else {
            return try db.cachedStatement(sql: "INSERT INTO body (sha, length, allocated, coding, stored) VALUES (?, ?, ?, ?, ?)")
                .execute(arguments: [hash.data, length, allocated, coding.rawValue, stored])
        }
        try db.execute(
            sql: "UPDATE body SET allocated = ?, coding = ?, stored = ? WHERE sha = ?",
            arguments: [allocated, coding.rawValue, stored, hash.data])
        try db.execute(sql: "UPDATE total SET bytes = bytes + ? WHERE name = 'bodies'", arguments: [allocated - known.allocated])
        try db.execute(
            sql: "UPDATE entry SET coding = ? WHERE in_file = 1 AND body_sha = ?", arguments: [coding.rawValue, hash.data])
    }
}
