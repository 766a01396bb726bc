// The rate limits that upstreams announce: `RateLimit` in its two forms (draft-ietf-httpapi-ratelimit-headers), and the fields before it.
package import HTTPTypes

/// What an answer says about the rest of a budget.
package struct RateLimitFields: Hashable, Sendable {
    /// Requests that are left.
    package var remaining: Int
    /// When the full number is available again.
    package var resetAt: Timestamp

    /// Later times are not believed.
    private static let longest = TimeSpan.hours(24)
    /// A larger number is a Unix time, not a number of seconds.
    private static let leastUnixTime: Int64 = 1_000_000_000

    /// Parses the fields of an answer; nil without a complete statement. Of several policies the one with the least left counts.
    package init?(_ fields: HTTPFields, now: Timestamp) {
        let items = fields[values: .rateLimit].flatMap { $0.split(separator: ",") }
        let isOld = items.contains { $0.contains("remaining=") }
        let statements = isOld ? [items.joined(separator: ";")] : items.map(String.init)
        var found = statements.compactMap { Self.statement($0) }
        for (remaining, reset) in [
            (HTTPField.Name.rateLimitRemaining, HTTPField.Name.rateLimitReset), (.xRateLimitRemaining, .xRateLimitReset),
        ]
        where found.isEmpty {
            if let left = fields[remaining].flatMap({ Int64($0) }), let time = fields[reset].flatMap({ Int64($0) }) {
                found = [(left, time)]
            }
        }
        guard let least = found.min(by: { $0.remaining < $1.remaining }), least.remaining >= 0, least.reset >= 0 else { return nil }
        remaining = Int(clamping: least.remaining)
        let reset = least.reset >= Self.leastUnixTime ? Timestamp(milliseconds: least.reset * 1000) : now + .seconds(least.reset)
        resetAt = min(max(reset, now), now + Self.longest)
    }

    /// Returns the parameters `r` and `t`, or `remaining` and `reset`, of one policy.
    private static func statement(_ text: String) -> (remaining: Int64, reset: Int64)? {
        var values: [Substring: Int64] = [:]
        for part in text.split(separator: ";") {
            let pair = part.split(separator: "=", maxSplits: 1).map { $0.filter { $0 != " " } }
            if pair.count == 2, let number = Int64(pair[1]) { values[pair[0][...]] = number }
        }
        guard let remaining = values["r"] ?? values["remaining"], let reset = values["t"] ?? values["reset"] else { return nil }
        return (remaining, reset)
    }
}
