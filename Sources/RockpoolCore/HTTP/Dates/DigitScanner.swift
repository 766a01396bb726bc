// Parses fixed-width text byte by byte. Date formats are exact, so any unexpected byte ends the parsing.

/// A cursor over the bytes of a field value. Every step reports whether it matched.
struct DigitScanner {
    private let bytes: [UInt8]
    private var position = 0

    init(_ text: some StringProtocol) { bytes = Array(text.utf8) }

    var isAtEnd: Bool { position == bytes.count }

    /// The next byte, without consuming it.
    var peek: UInt8? { position < bytes.count ? bytes[position] : nil }

    /// Consumes `literal`, matched exactly.
    mutating func take(_ literal: StaticString) -> Bool {
        let length = literal.utf8CodeUnitCount
        guard bytes.count - position >= length else { return false }
        let found = literal.withUTF8Buffer { unsafe $0.elementsEqual(bytes[position..<position + length]) }
        if found { position += length }
        return found
    }

    /// Consumes `literal`, ignoring case.
    mutating func takeIgnoringCase(_ literal: String) -> Bool {
        let found = FieldByte.equal(bytes[position...].prefix(literal.utf8.count), literal.utf8)
        if found { position += literal.utf8.count }
        return found
    }

    /// Consumes exactly `width` decimal digits.
    mutating func number(width: Int) -> Int? {
        guard bytes.count - position >= width else { return nil }
        var value = 0
        for byte in bytes[position..<position + width] {
            guard byte >= 0x30, byte <= 0x39 else { return nil }
            value = value * 10 + Int(byte - 0x30)
        }
        position += width
        return value
    }

    /// Consumes one of `names`, ignoring case, and returns its index.
    mutating func index(in names: [String]) -> Int? {
        for (index, name) in names.enumerated() where takeIgnoringCase(name) { return index }
        return nil
    }

    /// Consumes all consecutive ASCII digits; returns at most the first `limit`.
    mutating func digits(keeping limit: Int) -> [UInt8] {
        let start = position
        while let byte = peek, byte >= 0x30, byte <= 0x39 { position += 1 }
        return Array(bytes[start..<position].prefix(limit))
    }
}

extension [UInt8] {
    /// Appends `value` in decimal, padded with zeros to `width` digits.
    mutating func append(_ value: Int, width: Int) {
        let digits = Array(String(value).utf8)
        append(contentsOf: repeatElement(0x30, count: Swift.max(0, width - digits.count)))
        append(contentsOf: digits)
    }
}
