// Sizes and percentages as in the configuration: `500 MB`, `512 KiB`, `40%`. MB is 10⁶ bytes, MiB 2²⁰
// (docs/reference/configuration.md#values).

/// A number of bytes.
package struct ByteCount: Hashable, Comparable, Sendable, Codable {
    package var bytes: Int64

    package init(_ bytes: Int64) { self.bytes = bytes }

    package static let zero = ByteCount(0)
    /// 2⁵³ bytes, eight petabytes: larger than any real body, and sums of a few such lengths cannot overflow.
    package static let longestBody = ByteCount(1 << 53)

    /// `n` times 2¹⁰ bytes.
    package static func kib(_ n: Int64) -> ByteCount { ByteCount(n.multipliedClamped(by: 1024)) }
    /// `n` times 2²⁰ bytes.
    package static func mib(_ n: Int64) -> ByteCount { ByteCount(n.multipliedClamped(by: 1_048_576)) }
    /// `n` times 10⁶ bytes.
    package static func mb(_ n: Int64) -> ByteCount { ByteCount(n.multipliedClamped(by: 1_000_000)) }

    package static func < (a: Self, b: Self) -> Bool { a.bytes < b.bytes }
    package static func + (a: Self, b: Self) -> Self { ByteCount(a.bytes.addedClamped(b.bytes)) }
    package static func - (a: Self, b: Self) -> Self { ByteCount(a.bytes.addedClamped(-b.bytes)) }
    package static func += (a: inout Self, b: Self) { a = a + b }
    package static func -= (a: inout Self, b: Self) { a = a - b }
}

/// Sizes in bytes where an interface takes an integer: `.kib(64)`, `.mib(4)`.
extension BinaryInteger {
    /// `n` times 2¹⁰, as a number of bytes.
    @inlinable
    package static func kib(_ n: Self) -> Self { n * 1024 }

    /// `n` times 2²⁰, as a number of bytes. Traps if the type cannot represent it: for literals, not for numbers from outside.
    @inlinable
    package static func mib(_ n: Self) -> Self { n * 1_048_576 }
}

/// Sizes as text, parsed and formatted: `500 MB`, `512 KiB`, `1.5 GB` (docs/reference/configuration.md#values).
extension ByteCount: CustomStringConvertible {
    /// Smallest first; MB is 10⁶ bytes, MiB 2²⁰.
    private static let units: [(name: String, size: Int64)] = [
        ("B", 1), ("kB", 1000), ("KiB", 1 << 10), ("MB", 1_000_000), ("MiB", 1 << 20), ("GB", 1_000_000_000), ("GiB", 1 << 30),
        ("TB", 1_000_000_000_000), ("TiB", 1 << 40),
    ]

    /// Parses a number, optionally with a fraction, and a unit in any case; a number without a unit is in bytes.
    package init(parsing text: String) throws(UnitError) {
        let quantity = try Quantity(text)
        let name = quantity.unit.isEmpty ? "b" : quantity.unit.lowercased()
        guard let unit = Self.units.first(where: { $0.name.lowercased() == name }) else {
            throw .unknownUnit(String(quantity.unit), known: Self.units.map(\.name))
        }
        self.init(try quantity.scaled(by: unit.size))
    }

    /// The exact size in the unit that makes the number shortest: `500 MB`, `512 KiB`. Parsing it returns the same size.
    package var description: String {
        let unit = Self.units.last { bytes != 0 && bytes % $0.size == 0 } ?? ("B", 1)
        return "\(bytes / unit.size) \(unit.name)"
    }

    /// A readable size: one decimal of the largest decimal unit that fits, `1.4 MB`, rounded down.
    package var rounded: String {
        guard let unit = Self.units.last(where: { !$0.name.contains("i") && $0.size <= bytes }), unit.size > 1 else { return "\(bytes) B" }
        return "\(bytes / unit.size).\(bytes % unit.size / (unit.size / 10)) \(unit.name)"
    }
}

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

/// A number in text and the unit that follows it.
struct Quantity {
    private let whole: Int64
    private let fraction: Substring
    /// The unit as written, without the space before it; empty if there is none.
    let unit: Substring
    private let text: String

    init(_ text: String) throws(UnitError) {
        let trimmed = Substring(text).trimmingOWS()
        guard !trimmed.isEmpty else { throw .empty }
        let digits = trimmed.prefix { $0.isASCII && $0.isNumber }
        guard digits.isDigits else { throw .noNumber(text) }
        guard let whole = Int64(digits) else { throw .tooLarge(text) }
        var rest = trimmed[digits.endIndex...]
        var fraction = Substring()
        if rest.first == "." {
            fraction = rest.dropFirst().prefix { $0.isASCII && $0.isNumber }
            guard fraction.isDigits, fraction.utf8.count <= 9 else { throw .noNumber(text) }
            rest = rest[fraction.endIndex...]
        }
        self.whole = whole
        self.fraction = fraction
        self.text = text
        unit = rest.trimmingOWS()
    }

    var isZero: Bool { whole == 0 && fraction.allSatisfy { $0 == "0" } }

    /// The number times `size`, rounded down.
    func scaled(by size: Int64) throws(UnitError) -> Int64 {
        let (product, overflow) = whole.multipliedReportingOverflow(by: size)
        guard !overflow else { throw .tooLarge(text) }
        let places = fraction.utf8.reduce(Int64(1)) { power, _ in power * 10 }
        let part = (Int64(fraction) ?? 0).multipliedFullWidth(by: size)
        let (sum, sumOverflow) = product.addingReportingOverflow(places.dividingFullWidth(part).quotient)
        guard !sumOverflow else { throw .tooLarge(text) }
        return sum
    }
}

/// A quantity that cannot be parsed. The description is shown to the author of the configuration.
package enum UnitError: Error, Hashable, Sendable {
    case empty
    /// The text does not begin with a number.
    case noNumber(String)
    /// A number without a required unit, and the known units.
    case missingUnit(String, known: [String])
    /// An unknown unit, and the known units.
    case unknownUnit(String, known: [String])
    /// The number is too large to represent.
    case tooLarge(String)
    /// Not within 0…100 %.
    case notPercent(String)
}

extension UnitError: CustomStringConvertible {
    /// One clause for a report that begins with file and line.
    package var description: String {
        switch self {
        case .empty: "empty"
        case .noNumber(let text): "'\(text)' does not begin with a number"
        case .missingUnit(let text, let known): "'\(text)' needs a unit: \(known.joined(separator: ", "))"
        case .unknownUnit(let unit, let known): "unknown unit '\(unit)'; known are \(known.joined(separator: ", "))"
        case .tooLarge(let text): "'\(text)' is too large"
        case .notPercent(let text): "'\(text)' is not a share from 0% to 100%"
        }
    }
}

/// A number with its noun, the one place that chooses between singular and plural: `1 write`, `2 writes`.
extension BinaryInteger {
    /// Returns the number with its noun and the words that agree with it.
    /// - Parameters:
    ///   - one: the words after 1: `write waits`.
    ///   - many: the words after every other number: `writes wait`; without them `one` and an `s`.
    package func counted(_ one: String, _ many: String? = nil) -> String { "\(self) \(self == 1 ? one : many ?? one + "s")" }
}
