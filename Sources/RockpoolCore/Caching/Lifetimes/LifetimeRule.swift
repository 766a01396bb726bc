// The lifetimes that a route sets for its responses, in the manner of Squid's `refresh_pattern` (docs/caching.md#lifetimes-by-route).

/// `ttl` of a route. It is kept with a stored response, so that every later decision about it follows the same rule.
package struct LifetimeRule: Hashable, Sendable {
    /// `default`: the lifetime of a response that states none; nil: that of the category, or a heuristic one.
    package var fallback: TimeSpan?
    /// `min`: no lifetime is shorter; of a lifetime that the response states only with `overrides`.
    package var least: TimeSpan?
    /// `max`: no lifetime is longer.
    package var most: TimeSpan?
    /// `override`: the rule counts more than what the response says. `no-cache` and a lifetime of zero then count as nothing said, and
    /// `must-revalidate` and its kind do not apply.
    package var overrides = false

    package init() {}

    /// True if `min` is above `max`.
    package var isContradictory: Bool { least.map { least in most.map { least > $0 } ?? false } ?? false }
}

extension LifetimeRule {
    /// Reads the text that is kept with a stored response; nil if it is none.
    init?(_ text: String) {
        self.init()
        for member in text.split(separator: " ") {
            let parts = member.split(separator: "=", maxSplits: 1)
            let span = parts.count == 2 ? Int64(parts[1]).map { TimeSpan(milliseconds: max(0, $0)) } : nil
            switch (parts.first, span) {
            case ("default", let span?): fallback = span
            case ("min", let span?): least = span
            case ("max", let span?): most = span
            case ("override", nil): overrides = true
            default: return nil
            }
        }
    }

    /// The text that is kept with a stored response; spans in milliseconds.
    var text: String {
        let spans = [("default", fallback), ("min", least), ("max", most)].compactMap { name, span in
            span.map { "\(name)=\($0.milliseconds)" }
        }
        return (spans + (overrides ? ["override"] : [])).joined(separator: " ")
    }
}
