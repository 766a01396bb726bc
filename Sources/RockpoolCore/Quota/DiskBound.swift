// The storage limit of a directory as the smallest of three bounds: configuration, disk and `min_free` (docs/storage.md#ledger).

/// A limit and the bound it results from.
package struct DiskBound: Hashable, Sendable {
    /// The smallest bound.
    package enum Reason: String, Hashable, Sendable {
        /// The configured limit.
        case configured
        /// The file system would be full before the configured limit.
        case disk
        /// `min_free` of the file system would be violated before the configured limit.
        case minFree
    }

    /// Bytes, at least 0.
    package var limit: Int64
    /// The bound that determines the limit.
    package var reason: Reason

    /// A bound that was determined elsewhere.
    package init(limit: Int64, reason: Reason) {
        self.limit = max(0, limit)
        self.reason = reason
    }

    /// The bound of a directory that uses `used` bytes on a file system with `free` more available, of which `minFree` must remain.
    package static func decide(configured: Int64, used: Int64, free: Int64, minFree: Int64) -> DiskBound {
        let disk = max(0, used).addedClamped(max(0, free))
        let allowed = disk.addedClamped(-max(0, minFree))
        guard allowed < configured else { return DiskBound(limit: configured, reason: .configured) }
        return DiskBound(limit: allowed, reason: disk < configured ? .disk : .minFree)
    }
}
