// Shares in text: `40%` (contract §2).

/// Reads shares and takes them.
package enum Percent {
    /// A whole number of 0…100 followed by `%`.
    package static func parse(_ text: String) throws(UnitError) -> Int {
        let trimmed = Substring(text).trimmingOWS()
        let digits = trimmed.dropLast().trimmingOWS()
        guard trimmed.last == "%", digits.isDigits, let percent = Int(digits), percent <= 100 else { throw .notPercent(text) }
        return percent
    }
}

extension Int64 {
    /// `percent` hundredths of it, rounded down, without overflow on the way. `percent` is 0…100.
    package func percent(_ percent: Int) -> Int64 {
        self / 100 * Int64(percent) + self % 100 * Int64(percent) / 100
    }
}
