// Durations as text, parsed and formatted: `90s`, `15m`, `7d`, `forever` (docs/reference/configuration.md#values).

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
