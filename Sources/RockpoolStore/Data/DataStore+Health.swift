// The record whether the outbox can be written to (docs/storage.md#faults).
import GRDB
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
        case is QueueClosed: return .failure(DataStoreError.unavailable("the store is closed"))
        default: return result
        }
        noteFailure(error)
        return .failure(isFull ? DataStoreError.full : DataStoreError.unavailable("\(error)"))
    }

    private func noteWritten() {
        if health.withLock({ $0.wrote() }) == .recovered { logger.notice("the outbox can be written to again") }
    }

    private func noteFailure(_ error: any Error) {
        guard let fault = StorageHealth.Fault(error) else { return }
        let change = health.withLock { $0.failed(fault, detail: "\(error)", now: clock()) }
        if case .fell = change {
            logger.error("the outbox cannot be written to", metadata: ["fault": "\(fault.rawValue)", "error": "\(error)"])
        }
    }

    /// True if the disk has no room for a write, whatever `data_limit` leaves.
    package var isDiskFull: Bool { FreeSpace.bytes(at: directory) < .mib(1) }

    /// The reason why the last write failed; nil when it succeeded.
    package var trouble: StorageHealth.Trouble? { health.withLock { $0.trouble } }

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
