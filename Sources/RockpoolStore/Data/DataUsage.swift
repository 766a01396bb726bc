// How much the data store takes (contract §5, `/v1/storage`).
import RockpoolCore

/// Sums as the ledger has them, in allocated bytes.
package struct DataUsage: Hashable, Sendable {
    /// Everything under the directory, log budget and reserve included.
    package var usedBytes: Int64
    package var reservedBytes: Int64
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
    package func usage() -> DataUsage {
        let ledger = footprint.ledger
        let parts = footprint.parts
        return DataUsage(
            usedBytes: ledger.used, reservedBytes: ledger.reserved, limitBytes: ledger.limit, databaseBytes: parts.database,
            blobBytes: parts.files, reserveBytes: reserve.allocated, reclaimableBytes: parts.freePages,
            freeDiskBytes: FreeSpace.bytes(at: directory))
    }
}
