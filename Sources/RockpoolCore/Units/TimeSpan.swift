// Durations as in the configuration, `90s`, `15m`, `7d`, `forever`, and points in time (docs/reference/configuration.md#values).
import Synchronization

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

/// Durations as text, parsed and formatted: `90s`, `15m`, `7d`, `forever` (docs/reference/configuration.md#values).
extension TimeSpan: CustomStringConvertible {
    /// Smallest first, in milliseconds.
    private static let units: [(name: String, size: Int64)] = [
        ("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000), ("w", 604_800_000),
    ]

    /// Parses a number, optionally with a fraction, and a unit; or `forever`. Zero needs no unit.
    package init(parsing text: String) throws(UnitError) {
        if Substring(text).trimmingOWS() == "forever" {
            self = .forever
            return
        }
        let quantity = try Quantity(text)
        let known = Self.units.map(\.name)
        if quantity.unit.isEmpty {
            guard quantity.isZero else { throw .missingUnit(text, known: known) }
            self = .zero
            return
        }
        guard let unit = Self.units.first(where: { $0.name == quantity.unit }) else {
            throw .unknownUnit(String(quantity.unit), known: known)
        }
        self.init(milliseconds: try quantity.scaled(by: unit.size))
    }

    /// The exact span in the largest unit up to days that divides it. Parsing it returns the same span.
    package var description: String {
        if self == .forever { return "forever" }
        guard milliseconds != 0 else { return "0s" }
        let unit = Self.units.last { $0.name != "w" && milliseconds % $0.size == 0 } ?? ("ms", 1)
        return "\(milliseconds / unit.size)\(unit.name)"
    }
}

/// A point in time (docs/architecture.md#rules). Decisions take it as a parameter and never read a clock.
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

/// Saturating arithmetic instead of traps, because hostile numbers must not stop the process (docs/security-model.md#hostile-numbers).
extension Int64 {
    /// The sum, clamped to the range of Int64.
    package func addedClamped(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? (other > 0 ? .max : .min) : sum
    }

    /// The difference, clamped to the range of Int64.
    package func subtractedClamped(_ other: Int64) -> Int64 {
        let (difference, overflow) = subtractingReportingOverflow(other)
        return overflow ? (other > 0 ? .min : .max) : difference
    }

    /// The product, clamped to the range of Int64.
    package func multipliedClamped(by other: Int64) -> Int64 {
        let (product, overflow) = multipliedReportingOverflow(by: other)
        return overflow ? ((self > 0) == (other > 0) ? .max : .min) : product
    }
}

/// A point in the order of what a server asks, answers and writes, whatever its wall clock does. It is counted, not read from a clock, and
/// never repeated, also not after a restart: what was asked for after a write had ended has the greater tick (docs/outbox.md#ticks).
package struct Tick: Hashable, Comparable, Sendable {
    /// What comes before everything.
    package static let first = Tick(number: 0)
    /// What comes after everything.
    package static let last = Tick(number: .max)

    /// The greater the later. Before ticks were counted, milliseconds since 1970 took their place (`Ticks.runTickCount`).
    package let number: Int64

    package init(number: Int64) { self.number = number }

    package static func < (a: Self, b: Self) -> Bool { a.number < b.number }
}

/// Counts the ticks of one server.
package final class Ticks: Sendable {
    /// The ticks of one run. Times in milliseconds are less than those of the first run until 2039.
    package static let runTickCount: Int64 = 1 << 41

    private let counted: Atomic<Int64>

    /// - Parameter run: the number of the run, from 1.
    package init(run: Int64 = 1) { counted = Atomic(run.multipliedClamped(by: Self.runTickCount)) }

    /// The number of this run.
    package var run: Int64 { counted.load(ordering: .sequentiallyConsistent) / Self.runTickCount }

    /// Begins a run after the one with this number, whose ticks do not come again; does nothing in a later one.
    package func begin(after run: Int64) {
        let first = run.addedClamped(1).multipliedClamped(by: Self.runTickCount)
        _ = counted.max(first, ordering: .sequentiallyConsistent)
    }

    /// Returns a tick greater than every one before.
    package func next() -> Tick { Tick(number: counted.add(1, ordering: .sequentiallyConsistent).newValue) }
}

/// When something happened: by the wall clock, for people and for ages, and in the order of ticks.
package struct Moment: Hashable, Sendable {
    package let at: Timestamp
    package let tick: Tick

    package init(at: Timestamp, tick: Tick) { (self.at, self.tick) = (at, tick) }
}
