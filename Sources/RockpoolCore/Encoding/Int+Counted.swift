// A number with its noun, the one place that chooses between singular and plural: `1 write`, `2 writes`.

extension BinaryInteger {
    /// Returns the number with its noun and the words that agree with it.
    /// - Parameters:
    ///   - one: the words after 1: `write waits`.
    ///   - many: the words after every other number: `writes wait`; without them `one` and an `s`.
    package func counted(_ one: String, _ many: String? = nil) -> String { "\(self) \(self == 1 ? one : many ?? one + "s")" }
}
