// Entries that were not read since they were stored leave before the others (docs/storage.md#eviction).

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
