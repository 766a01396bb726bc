// Hours of a day, such as those for large transfers (docs/caching.md#budgets).

/// A span of local time that recurs each day, `01:00-06:00`; it may contain midnight.
package struct DayHours: Hashable, Sendable, CustomStringConvertible {
    private static let minutesOfDay = 24 * 60

    /// Minutes since midnight, the first one inclusive, the last one not.
    private let from: Int
    private let to: Int

    /// Parses `HH:MM-HH:MM`; nil for anything else, and for an empty span.
    package init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false).map { part -> Int? in
            let numbers = part.split(separator: ":", omittingEmptySubsequences: false)
            guard numbers.count == 2, numbers.allSatisfy({ $0.utf8.count == 2 && $0.utf8.allSatisfy { (48...57).contains($0) } }),
                let hour = Int(numbers[0]), let minute = Int(numbers[1]), minute < 60, hour < 24 || hour == 24 && minute == 0
            else { return nil }
            return hour * 60 + minute
        }
        guard parts.count == 2, let from = parts[0], let to = parts[1], from != to, from < Self.minutesOfDay else { return nil }
        (self.from, self.to) = (from, to)
    }

    /// True if the span contains this minute of the day.
    package func contains(minute: Int) -> Bool {
        from < to ? (from..<to).contains(minute) : minute >= from || minute < to
    }

    package var description: String { "\(Self.text(from))-\(Self.text(to))" }

    private static func text(_ minute: Int) -> String {
        [minute / 60, minute % 60].map { $0 < 10 ? "0\($0)" : "\($0)" }.joined(separator: ":")
    }
}
