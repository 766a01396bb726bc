// The requests for what is not stored yet (docs/caching.md#categories, `min_uses`).
import RockpoolCore
import Synchronization

/// Decides from which request on a response is stored.
final class Admission: Sendable {
    private let counts = Mutex(UseCounts(capacity: 16_384))

    /// Counts a request for a key that is not stored. Returns true if its response is stored now.
    func admits(_ key: CacheKey, to category: CacheCategory) -> Bool {
        category.minUses <= 1 || counts.withLock { $0.count(key.text) } >= category.minUses
    }
}
