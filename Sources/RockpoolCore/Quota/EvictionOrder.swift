// Which entries leave first when space is needed (docs/storage.md#eviction).

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
