// Exact sums and comparisons of JSON numbers (RFC 8259 §6 sets no limit to their digits).

/// A decimal number of any length.
struct ExactDecimal {
    /// The largest accepted exponent; a larger one would be written with an unreasonable number of zeros.
    static let exponentLimit = 1000

    private var isNegative: Bool
    /// The digits of the value times 10^scale, most significant first, without leading zeros; none for zero.
    private var digits: [UInt8]
    /// Digits after the point.
    private var scale: Int

    private init(isNegative: Bool, digits: [UInt8], scale: Int) {
        self.digits = Array(digits.drop { $0 == 0 })
        self.isNegative = isNegative && !self.digits.isEmpty
        self.scale = scale
    }

    /// Nil when the exponent passes the limit.
    init?(_ number: JSONNumber) {
        let parts = number.literal.utf8.drop { $0 == UInt8(ascii: "-") }
            .split(maxSplits: 1) { $0 == UInt8(ascii: "e") || $0 == UInt8(ascii: "E") }
        guard let mantissa = parts.first, let exponent = parts.count > 1 ? Int(Substring(parts[1])) : 0,
            (-Self.exponentLimit...Self.exponentLimit).contains(exponent)
        else { return nil }
        let whole = mantissa.prefix { $0 != UInt8(ascii: ".") }
        let fraction = mantissa.dropFirst(whole.count + 1)
        let scale = fraction.count - exponent
        let digits = (Array(whole) + fraction).map { $0 - UInt8(ascii: "0") } + Array(repeating: 0, count: max(0, -scale))
        self.init(isNegative: number.literal.hasPrefix("-"), digits: digits, scale: max(0, scale))
    }

    /// The number as JSON, with as many digits after the point as the operand with the most.
    var number: JSONNumber {
        let padded = Array(repeating: 0, count: max(0, scale + 1 - digits.count)) + digits
        var text = padded.map { $0 + UInt8(ascii: "0") }
        if scale > 0 { text.insert(UInt8(ascii: "."), at: text.count - scale) }
        return JSONNumber(checked: (isNegative ? "-" : "") + String(decoding: text, as: UTF8.self))
    }

    static func + (a: Self, b: Self) -> Self {
        let scale = max(a.scale, b.scale)
        let (x, y) = (a.digits(at: scale), b.digits(at: scale))
        if a.isNegative == b.isNegative { return Self(isNegative: a.isNegative, digits: sum(x, y), scale: scale) }
        return precedes(x, y)
            ? Self(isNegative: b.isNegative, digits: difference(y, x), scale: scale)
            : Self(isNegative: a.isNegative, digits: difference(x, y), scale: scale)
    }

    static func - (a: Self, b: Self) -> Self { a + Self(isNegative: !b.isNegative, digits: b.digits, scale: b.scale) }

    static func < (a: Self, b: Self) -> Bool { (a - b).isNegative }

    private func digits(at scale: Int) -> [UInt8] {
        digits.isEmpty ? [] : digits + Array(repeating: 0, count: scale - self.scale)
    }

    private static func precedes(_ a: [UInt8], _ b: [UInt8]) -> Bool {
        a.count == b.count ? a.lexicographicallyPrecedes(b) : a.count < b.count
    }

    private static func sum(_ a: [UInt8], _ b: [UInt8]) -> [UInt8] {
        var (result, carry): ([UInt8], UInt8) = ([], 0)
        for place in 0..<max(a.count, b.count) {
            let total = digit(of: a, at: place) + digit(of: b, at: place) + carry
            result.append(total % 10)
            carry = total / 10
        }
        return (result + [carry]).reversed()
    }

    /// Requires `a` not less than `b`.
    private static func difference(_ a: [UInt8], _ b: [UInt8]) -> [UInt8] {
        var (result, borrow): ([UInt8], UInt8) = ([], 0)
        for place in 0..<a.count {
            let (left, right) = (digit(of: a, at: place), digit(of: b, at: place) + borrow)
            borrow = left < right ? 1 : 0
            result.append(left + 10 * borrow - right)
        }
        return result.reversed()
    }

    /// Returns the digit at `place`, counted from the last; zero beyond the first.
    private static func digit(of digits: [UInt8], at place: Int) -> UInt8 {
        place < digits.count ? digits[digits.count - 1 - place] : 0
    }
}
