// The record whether the outbox can be written to (docs/storage.md#faults).
import GRDB
import Glibc
import Logging
package import RockpoolCore
import Synchronization

extension DataStore {
    /// Runs `body`, updates the health state, and maps SQLite's errors to `DataStoreError`.
    func translated<T>(_ body: () async throws -> T) async throws -> T {
        let result: Result<T, any Error>
        do { result = .success(try await body()) } catch { result = .failure(error) }
        return try translated(result).get()
    }

    /// Updates the health state by the result of a commit, and maps SQLite's errors to `DataStoreError`.
    func translated<T>(_ result: Result<T, any Error>) -> Result<T, any Error> {
        guard case .failure(let error) = result else {
            noteWritten()
            return result
        }
        let isFull: Bool
        switch error {
        case let error as DatabaseError: isFull = error.saysFull
        case let error as TransactionLost: isFull = error.isFull
        case is DatabaseMoved: isFull = false
        case is QueueClosed: return .failure(DataStoreError.unavailable("the store is closed"))
        default: return result
        }
        noteFailure(error)
        return .failure(isFull ? DataStoreError.diskFull : DataStoreError.unavailable("\(error)"))
    }

    private func noteWritten() {
        // What still fits on a full disk proves nothing.
        if health.withLock({ $0.trouble?.fault == .full }), FreeSpace.bytes(at: directory) < Self.roomAgain { return }
        if health.withLock({ $0.wrote() }) == .recovered { logger.notice("the outbox can be written to again") }
    }

    private func noteFailure(_ error: any Error) {
        guard let fault = StorageHealth.Fault(error) else { return }
        let change = health.withLock { $0.failed(fault, detail: "\(error)", now: clock()) }
        if case .fell = change {
            logger.error("the outbox cannot be written to", metadata: ["fault": "\(fault.rawValue)", "error": "\(error)"])
        }
    }

    /// Free bytes from which on a full disk counts as usable again, although nothing was written since.
    private static let roomAgain = Int64.mib(8)

    /// The reason why the last write failed; nil when it succeeded, and when a full disk has room again.
    package var trouble: StorageHealth.Trouble? {
        if health.withLock({ $0.trouble?.fault == .full }) { noteWritten() }
        if let moved = place.confirm() { noteFailure(moved) }
        return health.withLock { $0.trouble }
    }

    /// Why no write can be accepted now, of what the disk alone says; nil if it has room.
    package var diskTrouble: String? {
        let free = FreeSpace.bytes(at: directory)
        return free < Self.roomAgain ? "the disk of \(directory) has \(ByteCount(free)) free" : nil
    }

    /// Returns the error of a write for which the disk has no room. It is a fault of the outbox where a small write has none either.
    func diskIsFull() -> DataStoreError {
        noteFullDisk()
        return .diskFull
    }

    /// Notes a fault of the outbox where the disk has no room for a small write either.
    func noteFullDisk() {
        if FreeSpace.bytes(at: directory) < Self.roomAgain { noteFailure(FileError(call: "write", path: directory, code: ENOSPC)) }
    }

    /// Like `translated`, for results that must be recorded even on a full disk: the reserve is released for them. All jobs of the failed
    /// group fail, so each caller retries once; every job passed here must be repeatable.
    func recorded<T>(_ body: () async throws -> T) async throws -> T {
        do {
            let value = try await body()
            noteWritten()
            return value
        } catch let error where error is TransactionLost || (error as? DatabaseError)?.saysFull == true {
            let isFull = (error as? TransactionLost)?.isFull ?? true
            if isFull, reserve.giveUp() { logger.error("the disk is full; the reserve is given up to record what was sent") }
            return try await translated(body)
        } catch {
            return try await translated { throw error }
        }
    }

    /// Returns the usage. Callable on any thread: the database is not read.
    package func usage() -> DataUsage {
        let (ledger, unusedLog) = (footprint.ledger, footprint.unusedLogBudget)
        let parts = footprint.parts
        return DataUsage(
            usedBytes: ledger.used - unusedLog, reservedBytes: ledger.reserved, unusedLogBytes: unusedLog, limitBytes: ledger.limit,
            databaseBytes: parts.database,
            blobBytes: parts.files, reserveBytes: reserve.allocated, reclaimableBytes: parts.freePages,
            freeDiskBytes: FreeSpace.bytes(at: directory))
    }

    /// Returns what the open operations of an upstream count, in bytes, from the sums that its limit is checked against.
    /// - Throws: `DatabaseError`.
    package func openBytes(of upstream: String) async throws -> Int64 {
        try await queue.outside { try ShareSums.bytes(of: upstream, in: $0) }
    }
}

/// The sums of the ledger, in allocated bytes (docs/reference/admin-api.md#storage, `/v1/storage`).
package struct DataUsage: Hashable, Sendable {
    /// Everything under the directory as `du` counts it, the reserve included.
    package var usedBytes: Int64
    package var reservedBytes: Int64
    /// Bytes that the log may still grow by; they count against the limit too.
    package var unusedLogBytes: Int64
    package var limitBytes: Int64
    package var databaseBytes: Int64
    package var blobBytes: Int64
    /// Bytes of the file reserved for a full disk; 0 after it was released.
    package var reserveBytes: Int64
    /// Bytes of free pages; compaction returns them to the file system.
    package var reclaimableBytes: Int64
    package var freeDiskBytes: Int64
}

/// The preallocated file `reserve`, released when the disk is full, so that outcomes can still be recorded (docs/storage.md#durability). It
/// counts against the limit.
struct ReserveFile: Sendable {
    private let directory: String
    private var path: String { "\(directory)/reserve" }
    /// Bytes: the smaller of 32 MiB and a tenth of the limit.
    let size: Int64
    private let footprint: Footprint

    init(directory: String, size: Int64, footprint: Footprint) {
        self.directory = directory
        self.size = size
        self.footprint = footprint
        footprint.addFixed(allocated)
    }

    var allocated: Int64 { FileStatus.of(path)?.allocated ?? 0 }

    /// Creates or completes the file if it is incomplete and there is space for it.
    func fill(minFree: Int64) {
        let before = allocated
        let ledger = footprint.ledger
        let missing = size - before
        guard missing > 0, FileStatus.of(path)?.size != size else { return }
        guard ledger.used + ledger.reserved + missing <= ledger.limit, FreeSpace.bytes(at: directory) - missing > minFree else { return }
        if let file = try? Descriptor(path, O_WRONLY | O_CREAT) { try? file.allocate(size) }
        footprint.addFixed(allocated - before)
    }

    /// Releases the reserve.
    /// - Returns: true if it existed.
    func giveUp() -> Bool {
        let before = allocated
        guard before > 0, Paths.remove(path) else { return false }
        footprint.addFixed(-before)
        return true
    }
}
