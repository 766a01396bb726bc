// A JSON number with its original literal, so that large integers and long fractions are preserved (RFC 8259 §6).

/// A number stored as its literal. Equality compares exact values, so that `1`, `1.0` and `10e-1` are equal.
package struct JSONNumber: Sendable {
    /// Matches the grammar of RFC 8259 §6.
    package let literal: String

    package init(_ value: Int64) { literal = String(value) }

    /// Nil if `literal` is not a JSON number.
    package init?(literal: String) {
        guard let value = try? JSONValue.parse(Array(literal.utf8)), case .number(let number) = value, number.literal == literal else {
            return nil
        }
        self = number
    }

    /// For the parser, which has checked the grammar.
    init(checked literal: String) { self.literal = literal }

    /// The nearest double; infinite beyond its range.
    package var double: Double { Double(literal) ?? .nan }

    /// Sign, digits without leading and trailing zeros, and the power of ten of the last digit: one form per value. Nil if the exponent
    /// exceeds 64 bits; then only equal literals are equal.
    private var canonical: Canonical? {
        let isNegative = literal.hasPrefix("-")
        let parts = literal.drop { $0 == "-" }.split(maxSplits: 1) { $0 == "e" || $0 == "E" }
        guard let mantissa = parts.first else { return nil }
        let halves = mantissa.split(separator: ".", maxSplits: 1)
        let fraction = halves.count > 1 ? halves[1] : ""
        guard let written = parts.count > 1 ? Int64(parts[1]) : 0 else { return nil }
        var digits = Array(((halves.first ?? "") + fraction).utf8.drop { $0 == UInt8(ascii: "0") })
        if digits.isEmpty { return Canonical(isNegative: false, digits: [], exponent: 0) }
        let length = digits.count
        while digits.last == UInt8(ascii: "0") { digits.removeLast() }
        let (exponent, overflow) = written.addingReportingOverflow(Int64(length - digits.count - fraction.utf8.count))
        return overflow ? nil : Canonical(isNegative: isNegative, digits: digits, exponent: exponent)
    }

    private struct Canonical: Hashable {
        var isNegative: Bool
        var digits: [UInt8]
        var exponent: Int64
    }
}

extension JSONNumber: Hashable {
    package static func == (a: Self, b: Self) -> Bool {
        if a.literal == b.literal { return true }
        guard let x = a.canonical, let y = b.canonical else { return false }
        return x == y
    }

    package func hash(into hasher: inout Hasher) {
        if let canonical { hasher.combine(canonical) } else { hasher.combine(literal) }
    }
}
