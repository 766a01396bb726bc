// Identifiers that sort by time: operations, keys, local ids (RFC 9562 §5.7).

/// Version 7 UUIDs.
package enum UUIDv7 {
    /// Returns a version 7 UUID in lower-case text: 48 bits of milliseconds, then 74 of the given random bits.
    package static func make(now: Timestamp, random: (UInt64, UInt64)) -> String { bits(now: now, random: random).text }

    /// When a version 7 UUID was made, in whole milliseconds; nil for any other text.
    package static func moment(of text: String) -> Timestamp? {
        guard let bits = UUIDBits(text.utf8), bits.high >> 12 & 0xF == 7 else { return nil }
        return Timestamp(milliseconds: Int64(bits.high >> 16))
    }

    static func bits(now: Timestamp, random: (UInt64, UInt64)) -> UUIDBits {
        let time = UInt64(clamping: now.milliseconds) & 0xFFFF_FFFF_FFFF
        let high = time << 16 | 0x7000 | random.0 & 0x0FFF
        let low = random.1 & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000
        return UUIDBits(high: high, low: low)
    }
}

/// The 128 bits of a UUID (RFC 9562 §4).
struct UUIDBits: Hashable, Sendable {
    let high: UInt64
    let low: UInt64

    init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }

    /// Parses the 36 characters of a UUID in lower case; nil for any other text.
    init?(_ text: some Sequence<UInt8>) {
        var (high, low, place): (UInt64, UInt64, Int) = (0, 0, 0)
        for byte in text {
            guard place < 36 else { return nil }
            if Self.hyphens.contains(place) {
                guard byte == UInt8(ascii: "-") else { return nil }
            } else {
                let digit: UInt8
                switch byte {
                case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
                case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
                default: return nil
                }
                (high, low) = (high << 4 | low >> 60, low << 4 | UInt64(digit))
            }
            place += 1
        }
        guard place == 36 else { return nil }
        (self.high, self.low) = (high, low)
    }

    /// The written form, in lower case.
    var text: String {
        unsafe String(unsafeUninitializedCapacity: 36) { bytes in
            var place = 0
            for digit in 0..<32 {
                if Self.hyphens.contains(place) {
                    unsafe bytes[place] = UInt8(ascii: "-")
                    place += 1
                }
                let value = UInt8((digit < 16 ? high : low) >> UInt64(60 - 4 * (digit % 16)) & 0xF)
                unsafe bytes[place] = value + (value < 10 ? UInt8(ascii: "0") : UInt8(ascii: "a") - 10)
                place += 1
            }
            return place
        }
    }

    private static let hyphens = [8, 13, 18, 23]
}
