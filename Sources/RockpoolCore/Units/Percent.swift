// Percentages as text: `40%` (docs/reference/configuration.md#values).

/// Parses percentages.
package enum Percent {
    /// An integer of 0…100 followed by `%`.
    package static func parse(_ text: String) throws(UnitError) -> Int {
        let trimmed = Substring(text).trimmingOWS()
        let digits = trimmed.dropLast().trimmingOWS()
        guard trimmed.last == "%", digits.isDigits, let percent = Int(digits), percent <= 100 else { throw .notPercent(text) }
        return percent
    }
}

extension Int64 {
    /// `percent` hundredths of the value, rounded towards zero, without intermediate overflow. `percent` is 0…100.
    package func percent(_ percent: Int) -> Int64 {
        self / 100 * Int64(percent) + self % 100 * Int64(percent) / 100
    }
}
