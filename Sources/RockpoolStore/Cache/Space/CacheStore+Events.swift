// The last event of each URL, recorded when an entry is stored or removed (docs/reference/admin-api.md#explain *explain*).
package import RockpoolCore
import Synchronization

extension CacheStore {
    /// Records that a response to `url` was stored, or why it was not.
    package func note(_ event: KeyEvents.Event, of url: String) {
        let now = clock()
        keyEvents.withLock { $0.note(event, of: url, at: now) }
    }

    func note(_ event: KeyEvents.Event, of rows: [EvictionCandidate]) {
        let (now, urls) = (clock(), rows.compactMap { CacheKey(text: $0.key)?.url })
        keyEvents.withLock { events in urls.forEach { events.note(event, of: $0, at: now) } }
    }

    /// Returns the last event of `url`; nil when none is recorded. Only the last few thousand URLs are kept.
    package func lastEvent(of url: String) -> KeyEvents.Record? { keyEvents.withLock { $0.last(of: url) } }

    /// Returns the maximum bytes of a body that may be stored in a category, for a URL of an upstream that may have a quota.
    package func largestBody(in category: CacheCategory, of url: String? = nil) -> Int64 {
        let share = settings.cacheLimit.bytes.multipliedClamped(by: Int64(category.sharePercent)) / 100
        let quota = url.flatMap { self.quota(of: Self.origin(of: $0)) } ?? Int64.max
        return min(category.maxObject?.bytes ?? .max, share, quota)
    }
}
