// The space ledger of one directory, fed with measured sizes: used + reserved ≤ limit, in allocated bytes (docs/storage.md#ledger).
import GRDB
import RockpoolCore
import Synchronization

/// The allocated bytes of a directory by part, and the bytes reserved for writers.
///
/// The write-ahead log is charged with its whole budget from the start, and the database with its pages even before they are copied into
/// the file: neither a checkpoint nor the next commit can then exceed the limit.
final class Footprint: Sendable {
    /// Allocated bytes by part.
    struct Parts: Equatable, Sendable {
        var database: Int64 = 0
        var log: Int64 = 0
        /// Bodies or blobs under their final name, including files about to be unlinked.
        var files: Int64 = 0
        /// Directories, tag, lock, reserve, databases set aside.
        var fixed: Int64 = 0
        /// The part of `database` that holds no rows: free pages, reused before the file grows, and released pages by which the file has
        /// not been truncated yet.
        var freePages: Int64 = 0

        var total: Int64 { database + log + files + fixed }
    }

    private struct State {
        var ledger: Ledger
        var bound: DiskBound
        var parts = Parts()
    }

    /// Bytes of log that are charged whether used or not.
    let logBudget: Int64
    private let path: String
    /// The ledger of an empty directory, under the limit of the configuration.
    private let configured: Ledger
    private let state: Mutex<State>

    init(limit: ByteCount, database: StoreDatabase, groupWeight: Int64) {
        path = database.path
        logBudget = Int64(database.checkpointFrames) * 3 / 2 * StoreDatabase.frameSize + groupWeight + groupWeight / 4
        configured = Ledger(limit: limit.bytes)
        state = Mutex(State(ledger: configured, bound: DiskBound(limit: limit.bytes, reason: .configured)))
    }

    /// Reserves space for data about to be written.
    func reserve(_ room: SpaceRequest) -> Ledger.Verdict { state.withLock { $0.ledger.reserve(room) } }

    /// Releases reserved space that was not used, or that is now included in the measured sizes.
    func release(_ room: SpaceRequest) { state.withLock { $0.ledger.release(room) } }

    /// Replaces the reservation of a temporary file (`reserved` bytes) by the `actual` bytes of the finished file.
    func settle(reserved: Int64, actual: Int64) {
        change { state in
            state.ledger.release(SpaceRequest(files: reserved))
            state.parts.files += actual
        }
    }

    /// Adds `bytes` of files that appeared (negative: disappeared) without a reservation.
    func addFiles(_ bytes: Int64) { change { $0.parts.files += bytes } }

    func addFixed(_ bytes: Int64) { change { $0.parts.fixed += bytes } }

    /// Measures the sizes after a commit. Runs on the writer's thread.
    func measure(in db: Database) {
        let pages = (try? Int64.fetchOne(db.cachedStatement(sql: "PRAGMA page_count"))) ?? nil
        let free = (try? Int64.fetchOne(db.cachedStatement(sql: "PRAGMA freelist_count"))) ?? nil
        let file = FileStatus.of(path)?.allocated ?? 0
        let log = FileStatus.of(path + "-wal")?.allocated ?? 0
        let index = FileStatus.of(path + "-shm")?.allocated ?? 0
        change { state in
            state.parts.database = max(file, (pages ?? 0) * StoreDatabase.pageSize)
            state.parts.log = max(log, logBudget) + max(index, .kib(32))
            state.parts.freePages = state.parts.database - ((pages ?? 0) - (free ?? 0)) * StoreDatabase.pageSize
        }
    }

    /// Measures the pages of the database within a transaction; the files have not changed since its start. Runs on the writer's thread.
    func measurePages(in db: Database) {
        guard let pages = try? Int64.fetchOne(db.cachedStatement(sql: "PRAGMA page_count")) else { return }
        let free = (try? Int64.fetchOne(db.cachedStatement(sql: "PRAGMA freelist_count"))) ?? nil
        change { state in
            state.parts.database = max(state.parts.database, pages * StoreDatabase.pageSize)
            state.parts.freePages = state.parts.database - (pages - (free ?? 0)) * StoreDatabase.pageSize
        }
    }

    /// The most bytes of one file that eviction for the configured limit leaves where it is: the low mark without what is taken in an empty
    /// directory. The limit of the disk has no part in it: whether the disk has room again is found out by storing.
    var largestFile: Int64 { max(0, configured.lowMark - parts.log - parts.fixed - Self.emptyDatabase) }

    /// The tables and indexes of a database without rows.
    private static let emptyDatabase = Int64.kib(256)

    /// True if the log has outgrown its budget and should be truncated.
    var logIsOverBudget: Bool { (FileStatus.of(path + "-wal")?.allocated ?? 0) > logBudget }

    /// The part of the log's budget that the log does not occupy on the disk now.
    var unusedLogBudget: Int64 {
        let onDisk = ["-wal", "-shm"].reduce(0) { $0 + (FileStatus.of(path + $1)?.allocated ?? 0) }
        return max(0, parts.log - onDisk)
    }

    var parts: Parts { state.withLock { $0.parts } }
    var ledger: Ledger { state.withLock { $0.ledger } }
    var bound: DiskBound { state.withLock { $0.bound } }

    /// Sets the limit to `bound`: lower when the disk has less space, higher when it has more again.
    /// - Returns: true if the reason of the bound changed.
    func bind(to bound: DiskBound) -> Bool {
        state.withLock { state in
            defer { state.bound = bound }
            state.ledger.limit = bound.limit
            return state.bound.reason != bound.reason
        }
    }

    private func change(_ body: (inout State) -> Void) {
        state.withLock { state in
            body(&state)
            state.ledger.measured(used: state.parts.total, spare: state.parts.freePages)
        }
    }
}

/// What the first job of a turn of the writer has measured, so that a group of jobs asks for it once.
final class DiskOfTurn: Sendable {
    /// Bytes of the disk.
    struct Measured {
        /// Free, without what the jobs of the turn have taken since.
        var free: Int64
        /// The part of the reserve file that is still to be written.
        let owed: Int64
        /// True if there is room for more than one turn can take.
        let isAmple: Bool
    }

    private let state = Mutex<(turn: Int, measured: Measured?)>((-1, nil))

    /// Returns what was measured in this turn (`CommitQueue.turns`); nil for its first job.
    func measured(in turn: Int) -> Measured? { state.withLock { $0.turn == turn ? $0.measured : nil } }

    func note(_ measured: Measured, in turn: Int) { state.withLock { $0 = (turn, measured) } }
}

/// Space held by a writer. The unused part is released on deinit.
final class Reservation: Sendable {
    private let footprint: Footprint
    private let held: Mutex<SpaceRequest>

    /// - Parameter granted: space that the ledger has already granted.
    init(granted: SpaceRequest, of footprint: Footprint) {
        self.footprint = footprint
        held = Mutex(granted)
    }

    var bytes: Int64 { held.withLock { $0.bytes } }

    func grow(by granted: SpaceRequest) { held.withLock { $0 = $0 + granted } }

    /// Transfers the space to the caller, which settles it.
    func take() -> SpaceRequest {
        held.withLock { held in
            defer { held = SpaceRequest() }
            return held
        }
    }

    deinit { footprint.release(take()) }
}

/// Upper estimates of the space that data takes: an excessive reservation costs nothing once settled.
enum Cost {
    private static let block: Int64 = .kib(4)

    /// Allocated bytes of a file: its blocks, and the blocks that map them on file systems without extents.
    static func file(_ length: Int64) -> Int64 {
        let blocks = length / block + 1
        return (blocks + blocks / 1000 + 1).multipliedClamped(by: block)
    }

    /// Bytes of a row of `length` bytes: its pages once in the log and once in the file, with the index pages that it may split; a small
    /// store (limited to `limit` bytes) has few of these.
    static func row(_ length: Int64, within limit: Int64 = .max) -> Int64 {
        let splits = min(14, max(4, limit / .mib(2)))
        return (2 * (length / StoreDatabase.pageSize + 1) + splits).multipliedClamped(by: StoreDatabase.frameSize)
    }
}
