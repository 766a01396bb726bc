// The number of requests for keys that are not stored (docs/caching.md#categories, `min_uses`).

/// Counts of requests by key, bounded: of two generations, each of up to `capacity` keys, the older one is forgotten when the newer is full.
package struct UseCounts: Sendable {
    private let capacity: Int
    private var newer: [Int: Int] = [:]
    private var older: [Int: Int] = [:]

    /// Counts up to twice `capacity` keys, about 32 bytes each.
    package init(capacity: Int) { self.capacity = capacity }

    /// Counts a request, and returns the number of requests for the key that are remembered, this one included.
    package mutating func count(_ key: String) -> Int {
        // A rare equal hash only stores a response early.
        let hash = key.hashValue
        if newer[hash] == nil, newer.count >= capacity { (older, newer) = (newer, [:]) }
        newer[hash, default: 0] += 1
        return (newer[hash] ?? 0) + (older[hash] ?? 0)
    }
}
