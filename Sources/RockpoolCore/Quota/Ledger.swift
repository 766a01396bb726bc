// Room on disk as a value: `used + reserved ≤ limit`, reserved before the first byte is written (storage.md §2).

/// The account of one directory, in allocated bytes.
package struct Ledger: Hashable, Sendable {
    /// What a writer is told.
    package enum Verdict: Hashable, Sendable {
        /// The bytes are reserved.
        case granted
        /// Evict about this much, then ask again. Nothing is reserved yet.
        case evict(bytes: Int64)
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
    /// What writers have been promised and not yet settled.
    package private(set) var reserved: Int64 = 0

    /// Eviction starts past `softPercent` of the limit and goes down to `lowPercent` of it.
    package init(limit: Int64, softPercent: Int = 95, lowPercent: Int = 90) {
        self.limit = Swift.max(0, limit)
        self.softPercent = softPercent
        self.lowPercent = lowPercent
    }

    /// Asks for room. What is to be evicted goes down to the low mark where it can, so that the next writers find room too.
    package mutating func reserve(_ bytes: Int64) -> Verdict {
        guard bytes > 0 else { return .granted }
        let missing = held.addedClamped(bytes).addedClamped(-limit)
        if missing <= 0 {
            reserved += bytes
            return .granted
        }
        guard missing <= used else { return .refused }
        return .evict(bytes: min(used, max(missing, held.addedClamped(bytes) - lowMark)))
    }

    /// A writer is done: what it had reserved becomes what it really took.
    package mutating func settle(reserved bytes: Int64, actual: Int64) {
        release(bytes)
        used = used.addedClamped(max(0, actual))
    }

    /// A writer gave up.
    package mutating func release(_ bytes: Int64) { reserved = max(0, reserved - max(0, bytes)) }

    /// Something was deleted from disk.
    package mutating func remove(_ bytes: Int64) { used = max(0, used - max(0, bytes)) }

    /// The truth was counted: drift ends here. Bytes of open writers that are on disk already are counted by their reservation only.
    package mutating func measured(used bytes: Int64) { used = max(0, bytes) }

    /// How much to evict in one batch: nothing up to the soft mark, past it all down to the low mark.
    package var evictionGoal: Int64 {
        held > limit.percent(softPercent) ? min(used, held - lowMark) : 0
    }

    /// What has yet to go so that `bytes` more fit and the low mark is reached. `leaving` bytes are gone as soon as nobody reads them any
    /// more: the low mark takes them for gone already, the limit does not.
    package func shortfall(for bytes: Int64, leaving: Int64 = 0) -> Int64 {
        let wanted = held.addedClamped(max(0, bytes))
        return max(0, min(used, max(wanted - limit, wanted - lowMark - max(0, leaving))))
    }

    private var held: Int64 { used.addedClamped(reserved) }
    private var lowMark: Int64 { limit.percent(lowPercent) }
}
