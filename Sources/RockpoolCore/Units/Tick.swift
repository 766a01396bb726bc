// The order of what a server asks, answers and writes, whatever its wall clock does (docs/outbox.md#ticks).
import Synchronization

/// A point in that order. It is counted, not read from a clock, and never repeated, also not after a restart: what was asked for after a write
/// had ended has the greater tick.
package struct Tick: Hashable, Comparable, Sendable {
    /// What comes before everything.
    package static let first = Tick(number: 0)
    /// What comes after everything.
    package static let last = Tick(number: .max)

    /// The greater the later. Before ticks were counted, milliseconds since 1970 took their place (`Ticks.runLength`).
    package let number: Int64

    package init(number: Int64) { self.number = number }

    package static func < (a: Self, b: Self) -> Bool { a.number < b.number }
}

/// Counts the ticks of one server.
package final class Ticks: Sendable {
    /// The ticks of one run. Times in milliseconds are less than those of the first run until 2039.
    package static let runLength: Int64 = 1 << 41

    private let counted: Atomic<Int64>

    /// - Parameter run: the number of the run, from 1.
    package init(run: Int64 = 1) { counted = Atomic(run.multipliedClamped(by: Self.runLength)) }

    /// The number of this run.
    package var run: Int64 { counted.load(ordering: .sequentiallyConsistent) / Self.runLength }

    /// Begins a run after the one with this number, whose ticks do not come again; does nothing in a later one.
    package func begin(after run: Int64) {
        let first = run.addedClamped(1).multipliedClamped(by: Self.runLength)
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
