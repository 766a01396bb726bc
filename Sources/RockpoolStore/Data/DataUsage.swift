// The space used by the data store (docs/reference/admin-api.md#storage, `/v1/storage`).
import RockpoolCore

/// The sums of the ledger, in allocated bytes.
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

extension DataStore {
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
