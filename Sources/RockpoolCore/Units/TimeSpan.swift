// A duration as in the configuration: `90s`, `15m`, `7d`, `forever`.

/// A duration in milliseconds.
package struct TimeSpan: Hashable, Comparable, Sendable, Codable {
    package var milliseconds: Int64

    package init(milliseconds: Int64) { self.milliseconds = milliseconds }

    package static let zero = TimeSpan(milliseconds: 0)
    /// The maximum; a limit of this duration never expires.
    package static let forever = TimeSpan(milliseconds: .max)

    package static func milliseconds(_ n: Int64) -> TimeSpan { TimeSpan(milliseconds: n) }
    package static func seconds(_ n: Int64) -> TimeSpan { TimeSpan(milliseconds: n.multipliedClamped(by: 1000)) }
    package static func minutes(_ n: Int64) -> TimeSpan { .seconds(n.multipliedClamped(by: 60)) }
    package static func hours(_ n: Int64) -> TimeSpan { .minutes(n.multipliedClamped(by: 60)) }
    package static func days(_ n: Int64) -> TimeSpan { .hours(n.multipliedClamped(by: 24)) }

    /// Whole seconds, rounded down.
    package var seconds: Int64 { milliseconds / 1000 - (milliseconds % 1000 < 0 ? 1 : 0) }

    package static func < (a: Self, b: Self) -> Bool { a.milliseconds < b.milliseconds }
    package static func + (a: Self, b: Self) -> Self { TimeSpan(milliseconds: a.milliseconds.addedClamped(b.milliseconds)) }
    /// The absolute value.
    package var magnitude: TimeSpan { TimeSpan(milliseconds: Int64(clamping: milliseconds.magnitude)) }
    package static func - (a: Self, b: Self) -> Self { TimeSpan(milliseconds: a.milliseconds.subtractedClamped(b.milliseconds)) }
}
