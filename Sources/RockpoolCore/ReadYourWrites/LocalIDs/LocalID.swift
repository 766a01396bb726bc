// Ids that the proxy mints for entities without a server id; the format is recognisable in any text (docs/outbox.md#local-ids).

/// A local id: `loc_` and a UUIDv7 in lower case, 40 characters.
package struct LocalID: Hashable, Sendable, CustomStringConvertible {
    private let bits: UUIDBits

    /// The id in its written form.
    package var text: String { "loc_" + bits.text }

    /// Parses text that is exactly one local id; nil otherwise. A UUID of another version was not minted here.
    package init?(_ text: some StringProtocol) { self.init(utf8: text.utf8) }

    /// Parses the bytes of a text as `init(_:)` does.
    init?(utf8 bytes: some Sequence<UInt8>) {
        var place = 0
        for byte in bytes {
            guard place < Self.length, Self.allows(byte, at: place) else { return nil }
            place += 1
        }
        guard place == Self.length, let bits = UUIDBits(bytes.dropFirst(4)) else { return nil }
        self.bits = bits
    }

    private init(_ bits: UUIDBits) { self.bits = bits }

    /// Mints an id. `random` provides 74 bits (RFC 9562 §5.7).
    package static func make(now: Timestamp, random: (UInt64, UInt64)) -> LocalID {
        LocalID(UUIDv7.bits(now: now, random: random))
    }

    /// When it was minted, in whole milliseconds (RFC 9562 §5.7).
    package var mintedAt: Timestamp { Timestamp(milliseconds: Int64(text.dropFirst(4).prefix(13).filter { $0 != "-" }, radix: 16) ?? 0) }

    package var description: String { text }

    /// The length in characters.
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
}
