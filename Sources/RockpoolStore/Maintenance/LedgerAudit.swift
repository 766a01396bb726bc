// Daily comparison of the ledger with the allocated blocks on the disk; a difference is a bug (docs/storage.md#scrub).
package import RockpoolCore

/// The result of one audit of `bodies/`.
package struct LedgerAudit: Hashable, Sendable {
    package var at: Timestamp
    /// Allocated bytes on the disk, without foreign files.
    package var diskBytes: Int64
    /// Bytes that the ledger counted beyond that; negative: fewer.
    package var driftBytes: Int64
}
