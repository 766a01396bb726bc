// The files of `bodies/`: their names, who is reading them, and when they may be unlinked (storage.md §3, §4).
import GRDB
import Glibc
import Synchronization

/// Keeps a body's file on the disk while it is being read.
package final class BodyLease: Sendable {
    private let end: @Sendable () -> Void

    init(end: @escaping @Sendable () -> Void) { self.end = end }

    deinit { end() }
}

/// Bodies by SHA-256, in 256 directories that come and go with them. Names come and go on the writer's thread only, so that two of
/// them never meet. What else lies there is not ours, and stays.
final class BodyFiles: Sendable {
    private struct State {
        var readers: [[UInt8]: Int] = [:]
        /// Files that may have no row (any more), and the bytes that the ledger counts for them: looked at after the commit.
        var suspects: [[UInt8]: Int64] = [:]
        /// Bytes of those that only their readers still keep.
        var leavingBytes: Int64 = 0
        /// Being unlinked: nobody may begin to read it.
        var leaving: [UInt8]?
        /// Hashed since the start and found right.
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

    /// Gives a finished temporary its name. What it takes moves from `reserved` to used; its row must be written in this transaction.
    /// - Parameter counted: what the ledger counts for the body by its row, if it has one and only the file is gone.
    /// - Returns: what the ledger counts for it now, to be put into the row: that is given back when it goes, whatever the disk says then.
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

    /// A body that has lost its last row, if this transaction is committed.
    /// - Parameter counted: by its row.
    func suspect(_ hash: [UInt8], counted: Int64) { state.withLock { $0.suspects[hash] = counted } }

    /// Unlinks suspects that no committed row names and nobody reads; a row clears them of suspicion. Outside any transaction.
    func unlinkUnused(_ db: Database) {
        var leavingBytes: Int64 = 0
        for (hash, counted) in state.withLock(\.suspects) {
            guard let rows = try? Self.counted(hash, db) else { continue }
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

    /// Unlinks what no row names, and the ledger has never counted: what a crash between rename and commit left. On the writer's
    /// thread, outside any transaction, so that what has been stored since it was listed is passed over.
    /// - Returns: how many there were.
    func removeUnnamed(_ hashes: [[UInt8]], _ db: Database) -> Int {
        hashes.count { hash in
            guard !isAwaited(hash), FileStatus.of(path(of: hash))?.isFile == true, let rows = try? Self.counted(hash, db), rows.isEmpty
            else { return false }
            return unlink(hash) ?? false
        }
    }

    /// Whether it is known that the file is about to go, or to get its row.
    func isAwaited(_ hash: [UInt8]) -> Bool { state.withLock { $0.suspects[hash] != nil } }

    private static func counted(_ hash: [UInt8], _ db: Database) throws -> [Int64] {
        try Int64.fetchAll(try db.cachedStatement(sql: "SELECT allocated FROM body WHERE sha = ?"), arguments: [hash.data])
    }

    /// - Returns: whether the file was there; nil when it stays, because it is being read or the file system refuses.
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
        // Only the last of a directory takes it along.
        if unsafe rmdir(directory(of: hash)) == 0 || errno == ENOENT { noteDirectory(directory(of: hash)) }
        return wasThere
    }

    /// Bytes of files that have no row any more, and go when their readers do.
    var leavingBytes: Int64 { state.withLock(\.leavingBytes) }

    /// What is being read just now.
    var beingRead: Set<[UInt8]> { state.withLock { Set($0.readers.keys) } }

    /// - Parameter whenUnused: called when the last reader of a suspect is gone.
    /// - Returns: nil when the file is just being unlinked.
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

    /// What the file holds; nil when it is not there, or its seal is broken.
    /// - Parameter seal: opens a body that lies sealed; nil for any other.
    /// - Throws: `FileError` when the disk does not say.
    func bytes(of hash: [UInt8], seal: BodySeal?) throws -> [UInt8]? {
        do {
            return try seal.map { try SealedFile(path(of: hash), $0).bytes() } ?? FileBytes.read(path(of: hash))
        } catch is SealBroken {
            return nil
        } catch let error as FileError where error.code == ENOENT {
            return nil
        }
    }

    /// Whether the file is there and holds what its name says; hashed once a run. For bodies that are not deflated.
    /// - Parameter seal: opens a body that lies sealed; nil for any other.
    /// - Throws: `FileError` when the disk does not say: that is no reason to give the body up.
    func isIntact(_ hash: [UInt8], length: Int64, seal: BodySeal?) throws -> Bool {
        guard let status = FileStatus.of(path(of: hash)) else {
            guard errno == ENOENT else { throw FileError(call: "lstat", path: path(of: hash), code: errno) }
            return false
        }
        guard status.size == (seal == nil ? length : SealedChunks.size(of: length)) else { return false }
        if state.withLock({ $0.verified.contains(hash) }) { return true }
        guard try isNamedRight(hash, seal) else { return false }
        state.withLock { state in
            if state.verified.count > 100_000 { state.verified.removeAll() }
            state.verified.insert(hash)
        }
        return true
    }

    private func isNamedRight(_ hash: [UInt8], _ seal: BodySeal?) throws -> Bool {
        guard let seal else { return try Digest.ofFile(path(of: hash)) == hash }
        do { return seal.isName(hash, of: try SealedFile(path(of: hash), seal).digest()) } catch is SealBroken { return false }
    }

    /// Forgets that it was ever found right: the next to read it hashes it again.
    func doubt(_ hash: [UInt8]) { state.withLock { _ = $0.verified.remove(hash) } }

    /// Whether it was hashed, or stored, since it was last doubted.
    func isVerified(_ hash: [UInt8]) -> Bool { state.withLock { $0.verified.contains(hash) } }

    /// What the ledger counts for files without a row, of one shard or of all: those that only their readers keep.
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
