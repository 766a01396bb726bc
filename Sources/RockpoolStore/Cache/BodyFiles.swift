// The files of `bodies/`: their names, who is reading them, and when they may be unlinked (storage.md §3, §4).
import GRDB
import Synchronization

/// Keeps a body's file on the disk while it is being read.
package final class BodyLease: Sendable {
    private let end: @Sendable () -> Void

    init(end: @escaping @Sendable () -> Void) { self.end = end }

    deinit { end() }
}

/// Bodies by SHA-256. Names come and go on the writer's thread only, so that two of them never meet.
final class BodyFiles: Sendable {
    private struct State {
        var readers: [[UInt8]: Int] = [:]
        /// Files that may have no row (any more): looked at after the commit.
        var suspects: Set<[UInt8]> = []
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
    func adopt(_ file: SpoolFile, hash: [UInt8], reserved: Int64) throws -> Int64 {
        let target = path(of: hash)
        let replaced = FileStatus.of(target)?.allocated ?? 0
        let actual = file.allocated
        try Paths.makeDirectory(directory(of: hash))
        try Paths.move(file.path, to: target)
        file.release()
        footprint.settle(reserved: reserved, actual: actual - replaced)
        noteDirectory(root)
        noteDirectory(directory(of: hash))
        state.withLock { state in
            state.suspects.insert(hash)
            state.verified.insert(hash)
        }
        return actual
    }

    /// These may have lost their last row.
    func suspect(_ hashes: [[UInt8]]) { state.withLock { $0.suspects.formUnion(hashes) } }

    /// Unlinks suspects that no committed row names and nobody reads; a row clears them of suspicion. Outside any transaction.
    func unlinkUnused(_ db: Database) {
        for hash in state.withLock(\.suspects) {
            let asked = try? Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM body WHERE sha = ?)", arguments: [hash.data])
            guard let isUsed = asked else { continue }
            let isRead = state.withLock { state in
                let isRead = state.readers[hash] != nil
                if isUsed || !isRead { state.suspects.remove(hash) }
                return isRead
            }
            if !isUsed && !isRead { unlink(hash) }
        }
    }

    /// Whether it is known that the file is about to go, or to get its row.
    func isAwaited(_ hash: [UInt8]) -> Bool { state.withLock { $0.suspects.contains(hash) } }

    /// Bytes that were given back.
    @discardableResult
    func unlink(_ hash: [UInt8]) -> Int64 {
        let allocated = FileStatus.of(path(of: hash))?.allocated ?? 0
        guard Paths.remove(path(of: hash)) else { return 0 }
        state.withLock { _ = $0.verified.remove(hash) }
        footprint.addFiles(-allocated)
        return allocated
    }

    /// - Parameter whenUnused: called when the last reader of a suspect is gone.
    func lease(_ hash: [UInt8], whenUnused: @escaping @Sendable () -> Void) -> BodyLease {
        state.withLock { $0.readers[hash, default: 0] += 1 }
        return BodyLease { [self] in
            let isDue = state.withLock { state in
                let left = (state.readers[hash] ?? 1) - 1
                state.readers[hash] = left > 0 ? left : nil
                return left <= 0 && state.suspects.contains(hash)
            }
            if isDue { whenUnused() }
        }
    }

    /// Whether the file holds what its name says; hashed once a run.
    func isIntact(_ hash: [UInt8], length: Int64) -> Bool {
        guard FileStatus.of(path(of: hash))?.size == length else { return false }
        if state.withLock({ $0.verified.contains(hash) }) { return true }
        guard (try? Digest.ofFile(path(of: hash))) == hash else { return false }
        state.withLock { state in
            if state.verified.count > 100_000 { state.verified.removeAll() }
            state.verified.insert(hash)
        }
        return true
    }

    /// Every file there is.
    func all() -> [(hash: [UInt8], path: String)] {
        Paths.names(in: root).flatMap { directory in
            Paths.names(in: "\(root)/\(directory)").map { (Digest.bytes($0) ?? [], "\(root)/\(directory)/\($0)") }
        }
    }

    private func noteDirectory(_ path: String) {
        let allocated = FileStatus.of(path)?.allocated ?? 0
        let before = state.withLock { $0.directories.updateValue(allocated, forKey: path) ?? 0 }
        if allocated != before { footprint.addFixed(allocated - before) }
    }
}
