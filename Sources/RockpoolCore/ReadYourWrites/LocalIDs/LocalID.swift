// Ids that the proxy mints for entities without a server id; the format is recognisable in any text (docs/outbox.md#local-ids).

/// A local id: a text, `loc_` and a UUIDv7 in lower case, 40 characters; or, where the API's ids are numbers, a number of 16 digits.
package struct LocalID: Hashable, Sendable, CustomStringConvertible {
    /// Those of the UUID; a number is the high half beside 0, which no UUIDv7 has.
    private let bits: UUIDBits

    /// True if it is a number, and is written as one in JSON.
    package var isNumber: Bool { bits.low == 0 }

    /// The id in its written form.
    package var text: String { isNumber ? String(bits.high) : "loc_" + bits.text }

    /// Parses text that is exactly one local id; nil otherwise. A UUID of another version was not minted here.
    package init?(_ text: some StringProtocol) { self.init(utf8: text.utf8) }

    /// Parses the bytes of a text as `init(_:)` does.
    init?(utf8 bytes: some Sequence<UInt8>) {
        if let number = Self.number(bytes) {
            bits = UUIDBits(high: number, low: 0)
            return
        }
        var place = 0
        for byte in bytes {
            guard place < Self.length, Self.allows(byte, at: place) else { return nil }
            place += 1
        }
        guard place == Self.length, let bits = UUIDBits(bytes.dropFirst(4)) else { return nil }
        self.bits = bits
    }

    private init(_ bits: UUIDBits) { self.bits = bits }

    /// Mints a text. `random` provides 74 bits (RFC 9562 §5.7).
    package static func make(now: Timestamp, random: (UInt64, UInt64)) -> LocalID {
        LocalID(UUIDv7.bits(now: now, random: random))
    }

    /// Mints a number.
    package static func makeNumber(random: UInt64) -> LocalID {
        let multiples = (numbers.upperBound - numbers.lowerBound) / divisor
        let first = (numbers.lowerBound + divisor - 1) / divisor
        return LocalID(UUIDBits(high: (first + random % multiples) * divisor, low: 0))
    }

    package var description: String { text }

    // MARK: the form of texts

    /// The length of a text in characters.
    static let length = 40

    /// True if `byte` may stand at index `place`, 0..<40.
    static func allows(_ byte: UInt8, at place: Int) -> Bool {
        switch place {
        case 0: byte == UInt8(ascii: "l")
        case 1: byte == UInt8(ascii: "o")
        case 2: byte == UInt8(ascii: "c")
        case 3: byte == UInt8(ascii: "_")
        case 12, 17, 22, 27: byte == UInt8(ascii: "-")
        case 18: byte == UInt8(ascii: "7")  // the version
        case 23: byte == UInt8(ascii: "8") || byte == UInt8(ascii: "9") || byte == UInt8(ascii: "a") || byte == UInt8(ascii: "b")
        default: byte.isDigit || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
        }
    }

    // MARK: the form of numbers

    /// The number of digits, and the first one of them.
    static let digits = 16
    static let firstDigit = UInt8(ascii: "8")
    /// Within the integers that every JSON reader has (RFC 8259 §6), and above the ids that an API counts.
    private static let numbers: Range<UInt64> = 8_000_000_000_000_000..<9_000_000_000_000_000
    /// Only multiples of it are minted, so that most other numbers are known to be none without the table.
    private static let divisor: UInt64 = 97

    /// True if the number may have been minted.
    static func isNumber(_ value: UInt64) -> Bool { numbers.contains(value) && value.isMultiple(of: divisor) }

    private static func number(_ bytes: some Sequence<UInt8>) -> UInt64? {
        var (value, place): (UInt64, Int) = (0, 0)
        for byte in bytes {
            guard place < digits, byte.isDigit else { return nil }
            value = value * 10 + UInt64(byte - UInt8(ascii: "0"))
            place += 1
        }
        return place == digits && isNumber(value) ? value : nil
    }
}
