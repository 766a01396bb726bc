// Remembers keys of responses that could not be shared, so that requests for them are not serialised (hit-for-miss).
import DequeModule

/// A set of uncollapsible keys, limited in size and time. Recording a key again does not extend its time: once per span one request leads,
/// and shows whether sharing has become possible.
package struct HitForMissKeys: Sendable {
    /// Number of keys; beyond it the oldest is dropped. At 24 bytes plus a hash table entry each, about 200 KiB.
    package static let defaultCount = 4096
    /// The time for which a key is remembered.
    package static let defaultSpan = TimeSpan.seconds(120)

    private let limit: Int
    private let span: TimeSpan
    /// Only the key's hash is stored, so that long URLs take no space. A hash collision merely disables collapsing for a while.
    private var moments: [Int: Timestamp] = [:]
    /// In order of insertion, for expiry; at most `limit`.
    private var order: Deque<(hash: Int, moment: Timestamp)> = []

    /// - Parameter limit: Number of keys, at least 1.
    package init(limit: Int = defaultCount, span: TimeSpan = defaultSpan) {
        self.limit = max(1, limit)
        self.span = span
    }

    /// Keys held, including expired ones not yet removed.
    package var count: Int { order.count }

    /// Records that a response for `key` could not be shared.
    package mutating func note(_ key: CacheKey, now: Timestamp) {
        while let oldest = order.first, !isLive(oldest.moment, now: now) { forgetOldest() }
        guard !contains(key, now: now) else { return }
        while order.count >= limit { forgetOldest() }
        moments[key.hashValue] = now
        order.append((key.hashValue, now))
    }

    /// True if requests for `key` should be forwarded immediately.
    package func contains(_ key: CacheKey, now: Timestamp) -> Bool {
        moments[key.hashValue].map { isLive($0, now: now) } ?? false
    }

    /// A time in the future, after the clock was set back, counts as expired; otherwise the key would be remembered indefinitely.
    private func isLive(_ moment: Timestamp, now: Timestamp) -> Bool { moment <= now && now - moment < span }

    private mutating func forgetOldest() {
        guard let oldest = order.popFirst() else { return }
        // If the key was recorded again after the clock was set back, its later line in `order` expires it.
        if moments[oldest.hash] == oldest.moment { moments[oldest.hash] = nil }
    }
}
