// Saturating arithmetic instead of traps, because hostile numbers must not stop the process (docs/security-model.md#hostile-numbers).

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
