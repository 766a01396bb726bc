// Disk space: its accounting as a value, `used + reserved ≤ limit`, reserved before the first byte is written (docs/storage.md#ledger).

/// The account of one directory, in allocated bytes.
package struct Ledger: Hashable, Sendable {
    /// The result of a reservation.
    package enum Verdict: Hashable, Sendable {
        /// The bytes are reserved.
        case granted
        /// Evict entries, then request again. Nothing is reserved yet.
        case evict
        /// No eviction can free enough space.
        case refused
    }

    /// May be lowered at run time, if the disk has less space than configured.
    package var limit: Int64
    /// Percent of `limit` above which eviction starts, 0…100.
    package let softPercent: Int
    /// Percent of `limit` at which eviction stops, 0…100.
    package let lowPercent: Int
    /// Bytes on disk.
    package private(set) var used: Int64 = 0
    /// The part of `used` without rows: free pages of the database.
    package private(set) var spare: Int64 = 0
    /// Space reserved by writers and not yet released.
    private var promised = SpaceRequest()

    /// Eviction starts above `softPercent` of the limit and continues down to `lowPercent` of it.
    package init(limit: Int64, softPercent: Int = 95, lowPercent: Int = 90) {
        self.limit = Swift.max(0, limit)
        self.softPercent = softPercent
        self.lowPercent = lowPercent
    }

    /// Bytes reserved by writers and not yet released.
    package var reserved: Int64 { promised.bytes }

    /// Requests space.
    package mutating func reserve(_ room: SpaceRequest) -> Verdict {
        let missing = missing(for: room)
        if room.bytes == 0 || missing <= 0 {
            promised = promised + room
            return .granted
        }
        return missing <= used ? .evict : .refused
    }

    /// Called when a writer has finished or given up.
    package mutating func release(_ room: SpaceRequest) { promised = promised - room }

    /// Sets the measured usage, which corrects drift. Bytes that open writers have already written are counted by their reservation only.
    package mutating func measured(used bytes: Int64, spare: Int64 = 0) {
        used = max(0, bytes)
        self.spare = min(used, max(0, spare))
    }

    /// True if eviction is due: more than the soft mark is in use, or the limit is exceeded.
    package var isEvictionDue: Bool { live(with: SpaceRequest()) > limit.percent(softPercent) || missing(for: SpaceRequest()) > 0 }

    /// The bytes still to be removed so that `room` more fits and the low mark is reached. `leaving` bytes are freed once no reader uses
    /// them any more: the low mark counts them as freed already, the limit does not.
    package func shortfall(for room: SpaceRequest, leaving: Int64 = 0) -> Int64 {
        let wanted = live(with: room)
        return max(0, min(used - spare, max(wanted - limit, wanted - lowMark - max(0, leaving))))
    }

    /// The bytes by which disk usage would exceed the limit with `room` more: free pages must be returned to the file system if removing
    /// rows alone is not enough.
    package func missing(for room: SpaceRequest) -> Int64 {
        // Half of the space for rows belongs to the log, which does not use free pages.
        let promised = promised + room
        let growth = promised.files.addedClamped(promised.rows - min(promised.rows / 2, spare))
        return used.addedClamped(growth).addedClamped(-limit)
    }

    /// Used and reserved bytes, without free pages.
    private func live(with room: SpaceRequest) -> Int64 { (used - spare).addedClamped((promised + room).bytes) }

    /// The bytes down to which eviction goes.
    package var lowMark: Int64 { limit.percent(lowPercent) }
}

/// The space requested or held by a writer, in allocated bytes (docs/storage.md#limits-and-shares).
package struct SpaceRequest: Hashable, Sendable {
    /// Bytes of files not yet written.
    package var files: Int64
    /// Bytes of rows. Each page is counted twice, for the log and for the database; free pages are reused before the database grows.
    package var rows: Int64

    package init(files: Int64 = 0, rows: Int64 = 0) {
        self.files = max(0, files)
        self.rows = max(0, rows)
    }

    package var bytes: Int64 { files.addedClamped(rows) }

    package static func + (a: SpaceRequest, b: SpaceRequest) -> SpaceRequest {
        SpaceRequest(files: a.files.addedClamped(b.files), rows: a.rows.addedClamped(b.rows))
    }
    package static func - (a: SpaceRequest, b: SpaceRequest) -> SpaceRequest {
        SpaceRequest(files: a.files - b.files, rows: a.rows - b.rows)
    }
}

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
