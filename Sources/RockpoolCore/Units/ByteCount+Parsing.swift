// Sizes in text and back: `500 MB`, `512 KiB`, `1.5 GB` (contract §2, §6).

extension ByteCount: CustomStringConvertible {
    /// Smallest first; MB is 10⁶ bytes, MiB 2²⁰.
    private static let units: [(name: String, size: Int64)] = [
        ("B", 1), ("kB", 1000), ("KiB", 1 << 10), ("MB", 1_000_000), ("MiB", 1 << 20), ("GB", 1_000_000_000), ("GiB", 1 << 30),
        ("TB", 1_000_000_000_000), ("TiB", 1 << 40),
    ]

    /// Reads a number, with or without a fraction, and a unit in any case; a number alone is bytes.
    package init(parsing text: String) throws(UnitError) {
        let quantity = try Quantity(text)
        let name = quantity.unit.isEmpty ? "b" : quantity.unit.lowercased()
        guard let unit = Self.units.first(where: { $0.name.lowercased() == name }) else {
            throw .unknownUnit(String(quantity.unit), known: Self.units.map(\.name))
        }
        self.init(try quantity.scaled(by: unit.size))
    }

    /// The exact size in the unit that makes the number shortest: `500 MB`, `512 KiB`. Parsing it gives the same size again.
    package var description: String {
        let unit = Self.units.last { bytes != 0 && bytes % $0.size == 0 } ?? ("B", 1)
        return "\(bytes / unit.size) \(unit.name)"
    }

    /// For people: one decimal of the largest decimal unit that fits, `1.4 MB`, rounded down.
    package var rounded: String {
        guard let unit = Self.units.last(where: { !$0.name.contains("i") && $0.size <= bytes }), unit.size > 1 else { return "\(bytes) B" }
        return "\(bytes / unit.size).\(bytes % unit.size / (unit.size / 10)) \(unit.name)"
    }
}
