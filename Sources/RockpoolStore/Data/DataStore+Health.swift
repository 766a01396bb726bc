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
}
