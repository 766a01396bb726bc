// How much the data store takes (contract §5, `/v1/storage`).
import RockpoolCore

/// Sums as the ledger has them, in allocated bytes.
package struct DataUsage: Hashable, Sendable {
    /// Everything under the directory as `du` counts it, the reserve included.
    package var usedBytes: Int64
    package var reservedBytes: Int64
    /// What the log may still grow by: held against the limit too.
    package var unusedLogBytes: Int64
    package var limitBytes: Int64
    package var databaseBytes: Int64
    package var blobBytes: Int64
    /// The file kept for a full disk; 0 when it was given up.
    package var reserveBytes: Int64
    /// Free pages: compaction gives them back.
    package var reclaimableBytes: Int64
    package var freeDiskBytes: Int64
}

extension DataStore {
    /// Callable anywhere: nothing is read from the database.
    package func usage() -> DataUsage {
        let (ledger, unusedLog) = (footprint.ledger, footprint.unusedLogBudget)
        let parts = footprint.parts
        return DataUsage(
            usedBytes: ledger.used - unusedLog, reservedBytes: ledger.reserved, unusedLogBytes: unusedLog, limitBytes: ledger.limit,
            databaseBytes: parts.database,
            blobBytes: parts.files, reserveBytes: reserve.allocated, reclaimableBytes: parts.freePages,
            freeDiskBytes: FreeSpace.bytes(at: directory))
    }
}
