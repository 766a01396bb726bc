// How much a directory may take when the disk has a say: the smallest of three bounds, and which it is (storage.md §2).

/// A limit and where it comes from.
package struct DiskBound: Hashable, Sendable {
    /// Which bound is the smallest.
    package enum Reason: String, Hashable, Sendable {
        /// What the configuration says.
        case configured
        /// The file system would be full before that.
        case disk
        /// `min_free` of the file system would be gone before that.
        case minFree
    }

    /// Bytes, at least 0.
    package var limit: Int64
    /// Where it comes from.
    package var reason: Reason

    /// A bound that was decided elsewhere.
    package init(limit: Int64, reason: Reason) {
        self.limit = max(0, limit)
        self.reason = reason
    }

    /// The bound of a directory that takes `used` bytes of a file system where `free` more can be had, `minFree` of which are to stay.
    package static func decide(configured: Int64, used: Int64, free: Int64, minFree: Int64) -> DiskBound {
        let disk = max(0, used).addedClamped(max(0, free))
        let allowed = disk.addedClamped(-max(0, minFree))
        guard allowed < configured else { return DiskBound(limit: configured, reason: .configured) }
        return DiskBound(limit: allowed, reason: disk < configured ? .disk : .minFree)
    }
}
