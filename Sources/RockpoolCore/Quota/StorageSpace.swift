// Disk space: its accounting as a value, `used + reserved ≤ limit`, reserved before the first byte is written (docs/storage.md#ledger),
// and which entries leave first (docs/storage.md#eviction).

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

    private var lowMark: Int64 { limit.percent(lowPercent) }
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

// MARK: - Eviction

/// The eviction order among categories.
package enum EvictionOrder {
    /// Evict up to `bytes` from one category.
    package struct Step: Hashable, Sendable {
        /// The name of the category.
        package var category: String
        /// At least 1.
        package var bytes: Int64

        /// A step of a plan.
        package init(category: String, bytes: Int64) {
            self.category = category
            self.bytes = bytes
        }
    }

    /// The steps that together free `goal` bytes, or as many as may be freed. First the bytes above a category's share are evicted, then
    /// those above its guarantee; each time a lighter category before a heavier one, then the one with more bytes to free. `usage` counts
    /// evictable bytes by category name; a category that is no longer configured has no share and no weight.
    package static func plan(goal: Int64, usage: [String: Int64], categories: [CacheCategory], limit: Int64) -> [Step] {
        let known = Dictionary(categories.map { ($0.name, $0) }) { _, last in last }
        var left = usage
        var missing = goal
        var steps: [Step] = []
        for floor in [\CacheCategory.sharePercent, \CacheCategory.guaranteePercent] {
            let holders = left.keys.map { known[$0] ?? CacheCategory(name: $0, sharePercent: 0, weight: 0) }
            let surplus = { (category: CacheCategory) in left[category.name, default: 0] - limit.percent(category[keyPath: floor]) }
            for (category, bytes) in holders.map({ ($0, surplus($0)) }).sorted(by: leavesFirst) where missing > 0 && bytes > 0 {
                let step = Step(category: category.name, bytes: min(bytes, missing))
                left[step.category, default: 0] -= step.bytes
                missing -= step.bytes
                steps.append(step)
            }
        }
        return steps
    }

    /// The number of requests above which more make no difference, so that nothing stays for ever for what it was once.
    package static let mostRequests: Int64 = 64

    /// Returns the rank of an entry in its category as of its last request: the lowest leaves first. It grows with the requests and falls with
    /// the size, by its square root: with the size itself few large entries would stay and few of the bytes be hits, without it few small ones.
    /// The rule is that of GreedyDual-Size-Frequency (Cherkasova, 1998), whose floor lets what is no longer read sink.
    /// - Parameters:
    ///   - requests: at least 1, the one that stored it included.
    ///   - floor: the rank of the last entry of its category that has left for its rank.
    package static func rank(requests: Int64, bytes: Int64, above floor: Double) -> Double {
        floor + Double(min(max(1, requests), mostRequests)) / Double(max(1, bytes)).squareRoot()
    }

    private static func leavesFirst(_ a: (CacheCategory, Int64), _ b: (CacheCategory, Int64)) -> Bool {
        (a.0.weight, b.1, a.0.name) < (b.0.weight, a.1, b.0.name)
    }
}

/// The probation of cache entries, within one category.
///
/// The rule is that of S3-FIFO (Yang et al., SOSP 2023): new entries wait in a small queue, which a scan of many URLs fills and leaves
/// without touching the entries that are read again and again.
package enum Probation {
    /// The share of a category's evictable bytes that entries on probation keep, in percent.
    package static let share = 10

    /// Returns the bytes of entries on probation that leave before any other entry of their category.
    /// - Parameters:
    ///   - bytes: the bytes of entries on probation.
    ///   - evictable: all evictable bytes of the category.
    package static func surplus(_ bytes: Int64, of evictable: Int64) -> Int64 { max(0, bytes - evictable.percent(share)) }
}

/// The keys that were evicted last while on probation: an entry that comes back so soon is read often enough, and skips the probation.
package struct EvictedKeys: Sendable {
    /// The number of keys that are remembered.
    private let capacity: Int
    /// The hashes of the keys: a rare equal hash only spares an entry its probation.
    private var hashes: Set<Int> = []
    /// The same in order of eviction, as a ring.
    private var ring: [Int] = []
    private var next = 0

    /// Remembers up to `capacity` keys, about 24 bytes each.
    package init(capacity: Int) { self.capacity = capacity }

    /// Remembers a key, in place of the oldest one.
    package mutating func note(_ key: String) {
        guard hashes.insert(key.hashValue).inserted else { return }
        if ring.count < capacity {
            ring.append(key.hashValue)
        } else {
            hashes.remove(ring[next])
            ring[next] = key.hashValue
        }
        next = (next + 1) % capacity
    }

    /// Returns true, and forgets the key, if it is remembered.
    package mutating func take(_ key: String) -> Bool { hashes.remove(key.hashValue) != nil }
}
