// Remembers keys whose answers could not be shared, so that requests for them do not queue behind each other (hit-for-miss).
import DequeModule

/// A memory of misses that could not be collapsed, bounded in number and time. A key noted again while it is remembered is not
/// remembered longer: once in every span one request leads, and finds out whether sharing has become possible.
package struct UncollapsibleKeys: Sendable {
    /// Keys; past it the oldest goes. At 24 bytes and a table's share each, some 200 KiB.
    package static let defaultLimit = 4096
    /// How long a key is remembered.
    package static let defaultSpan = TimeSpan.seconds(120)

    private let limit: Int
    private let span: TimeSpan
    /// Of keys only the hash is kept, so that long URLs cost nothing. Two that share one would merely not be collapsed for a while.
    private var moments: [Int: Timestamp] = [:]
    /// In order of noting, for forgetting; at most `limit`.
    private var order: Deque<(hash: Int, moment: Timestamp)> = []

    /// - Parameter limit: Keys, at least 1.
    package init(limit: Int = defaultLimit, span: TimeSpan = defaultSpan) {
        self.limit = max(1, limit)
        self.span = span
    }

    /// Keys held, be they due for forgetting.
    package var count: Int { order.count }

    /// Remembers that an answer for `key` could not be shared.
    package mutating func note(_ key: CacheKey, now: Timestamp) {
        while let oldest = order.first, !isLive(oldest.moment, now: now) { forgetOldest() }
        guard !contains(key, now: now) else { return }
        while order.count >= limit { forgetOldest() }
        moments[key.hashValue] = now
        order.append((key.hashValue, now))
    }

    /// Whether requests for `key` should go forward at once.
    package func contains(_ key: CacheKey, now: Timestamp) -> Bool {
        moments[key.hashValue].map { isLive($0, now: now) } ?? false
    }

    /// A moment that lies ahead, because the clock went back, would else be remembered for who knows how long.
    private func isLive(_ moment: Timestamp, now: Timestamp) -> Bool { moment <= now && now - moment < span }

    private mutating func forgetOldest() {
        guard let oldest = order.popFirst() else { return }
        // Noted again since, after a clock that went back: the later line of `order` stands for it.
        if moments[oldest.hash] == oldest.moment { moments[oldest.hash] = nil }
    }
}
