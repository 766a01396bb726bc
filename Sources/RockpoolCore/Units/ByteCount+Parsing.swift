// Sizes as text, parsed and formatted: `500 MB`, `512 KiB`, `1.5 GB` (docs/reference/configuration.md#values).

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
