// Room on disk as a value: `used + reserved ≤ limit`, reserved before the first byte is written (storage.md §2).

/// What a writer asks for or holds, in allocated bytes.
package struct Room: Hashable, Sendable {
    /// Of files yet to be written.
    package var files: Int64
    /// Of rows: each page once in the log and once in the database, where those that are free are used before its file grows.
    package var rows: Int64

    package init(files: Int64 = 0, rows: Int64 = 0) {
        self.files = max(0, files)
        self.rows = max(0, rows)
    }

    package var bytes: Int64 { files.addedClamped(rows) }
}

/// The account of one directory, in allocated bytes.
package struct Ledger: Hashable, Sendable {
    /// What a writer is told.
    package enum Verdict: Hashable, Sendable {
        /// The bytes are reserved.
        case granted
        /// Make the room, then ask again. Nothing is reserved yet.
        case evict
        /// No eviction can make the room.
        case refused
    }

    /// May be lowered while running, when the disk has less room than was configured.
    package var limit: Int64
    /// Percent of `limit` past which eviction starts, 0…100.
    package let softPercent: Int
    /// Percent of `limit` at which eviction stops, 0…100.
    package let lowPercent: Int
    /// What is on disk.
    package private(set) var used: Int64 = 0
    /// What of `used` no row takes: free pages of the database.
    package private(set) var spare: Int64 = 0
    /// What writers have been promised and not yet settled.
    private var promised = Room()

    /// Eviction starts past `softPercent` of the limit and goes down to `lowPercent` of it.
    package init(limit: Int64, softPercent: Int = 95, lowPercent: Int = 90) {
        self.limit = Swift.max(0, limit)
        self.softPercent = softPercent
        self.lowPercent = lowPercent
    }

    /// Bytes that writers have been promised and not yet settled.
    package var reserved: Int64 { promised.bytes }

    /// Asks for room.
    package mutating func reserve(_ room: Room) -> Verdict {
        let missing = missing(for: room)
        if room.bytes == 0 || missing <= 0 {
            promised = promised + room
            return .granted
        }
        return missing <= used ? .evict : .refused
    }

    /// A writer is done, or gave up.
    package mutating func release(_ room: Room) { promised = promised - room }

    /// The truth was counted: drift ends here. Bytes of open writers that are on disk already are counted by their reservation only.
    package mutating func measured(used bytes: Int64, spare: Int64 = 0) {
        used = max(0, bytes)
        self.spare = min(used, max(0, spare))
    }

    /// Whether something should go: more than the soft mark is in use, or more than the limit is taken.
    package var isEvictionDue: Bool { live(with: Room()) > limit.percent(softPercent) || missing(for: Room()) > 0 }

    /// What has yet to be removed so that `room` more fits and the low mark is reached. `leaving` bytes are gone as soon as nobody reads
    /// them any more: the low mark takes them for gone already, the limit does not.
    package func shortfall(for room: Room, leaving: Int64 = 0) -> Int64 {
        let wanted = live(with: room)
        return max(0, min(used - spare, max(wanted - limit, wanted - lowMark - max(0, leaving))))
    }

    /// By how much too much the disk would take with `room` more: what free pages have to give back to the file system, where removing
    /// alone does not make it fit.
    package func missing(for room: Room) -> Int64 {
        // Half of what rows take is the log's, which free pages do not hold.
        let promised = promised + room
        let growth = promised.files.addedClamped(promised.rows - min(promised.rows / 2, spare))
        return used.addedClamped(growth).addedClamped(-limit)
    }

    /// What is in use and what is promised, free pages left out.
    private func live(with room: Room) -> Int64 { (used - spare).addedClamped((promised + room).bytes) }

    private var lowMark: Int64 { limit.percent(lowPercent) }
}

extension Room {
    package static func + (a: Room, b: Room) -> Room { Room(files: a.files.addedClamped(b.files), rows: a.rows.addedClamped(b.rows)) }
    package static func - (a: Room, b: Room) -> Room { Room(files: a.files - b.files, rows: a.rows - b.rows) }
}
