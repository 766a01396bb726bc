// A point in time in milliseconds since the Unix epoch, passed to decisions in place of a clock (docs/architecture.md#rules).

/// A point in time. Decisions take it as a parameter and never read a clock.
package struct Timestamp: Hashable, Comparable, Sendable, Codable {
    /// Milliseconds since 1970-01-01T00:00:00Z; negative before it.
    package var milliseconds: Int64

    package init(milliseconds: Int64) { self.milliseconds = milliseconds }

    /// The whole second `seconds` after the epoch.
    package init(seconds: Int64) { self.milliseconds = seconds.multipliedClamped(by: 1000) }

    /// Whole seconds since the epoch, rounded down: the resolution of HTTP dates.
    package var seconds: Int64 { milliseconds / 1000 - (milliseconds % 1000 < 0 ? 1 : 0) }

    package static func < (a: Self, b: Self) -> Bool { a.milliseconds < b.milliseconds }

    /// The time `span` later; clamped to the maximum for `.forever`.
    package static func + (moment: Self, span: TimeSpan) -> Self {
        Timestamp(milliseconds: moment.milliseconds.addedClamped(span.milliseconds))
    }

    package static func - (moment: Self, span: TimeSpan) -> Self {
        Timestamp(milliseconds: moment.milliseconds.subtractedClamped(span.milliseconds))
    }

    /// The span from `b` to `a`; negative if `a` is earlier.
    package static func - (a: Self, b: Self) -> TimeSpan {
        TimeSpan(milliseconds: a.milliseconds.subtractedClamped(b.milliseconds))
    }

    package static let distantPast = Timestamp(milliseconds: 0)
    package static let distantFuture = Timestamp(milliseconds: .max)
}
