// The contents of the cache in numbers.
package import RockpoolCore

/// The space used by the cache, by kind (docs/reference/admin-api.md#storage, `/v1/storage`).
package struct CacheUsage: Sendable {
    package var entries: Int
    package var byCategory: [String: CategoryUsage]
    /// Everything under the directory, as `du` counts it.
    package var usedBytes: Int64
    /// Bytes reserved for writers.
    package var reservedBytes: Int64
    /// Bytes that the log may still grow by; they count against the limit too.
    package var unusedLogBytes: Int64
    /// The configured limit, or less when the disk has less space.
    package var limitBytes: Int64
    /// The bound that determines `limitBytes`.
    package var limitReason: DiskBound.Reason
    package var databaseBytes: Int64
    package var logBytes: Int64
    /// Bytes of the files in `bodies/`.
    package var bodyBytes: Int64
    /// Bytes of free pages; compaction returns them to the file system.
    package var reclaimableBytes: Int64
    package var pinnedBytes: Int64
    package var memoryBytes: Int64
    /// Entries evicted since the start.
    package var evictions: Int
    /// Bodies that failed their checksum since the start.
    package var badBodies: Int
    /// Free bytes of the file system, as available to this process.
    package var freeDiskBytes: Int64
    /// The part of them that is left free (`storage.min_free`).
    package var minFreeBytes: Int64
    /// Bytes that the ledger counted for bodies beyond their allocated size at the last audit (negative: fewer). Any value but 0 is a bug.
    package var driftBytes: Int64
    /// The time of the last comparison of the ledger with the disk; nil when there was none since the start.
    package var auditedAt: Timestamp?
}

/// Entries and bytes of one category.
package struct CategoryUsage: Hashable, Sendable, Codable {
    package var entries: Int
    package var bytes: Int64
    /// The pinned part of `entries`.
    package var pinnedEntries = 0
    /// The pinned part of `bytes`.
    package var pinnedBytes: Int64 = 0
}
