// Identifiers that sort by time: operations, keys, local ids (RFC 9562 §5.7).

/// Version 7 UUIDs.
package enum UUIDv7 {
    /// Returns a version 7 UUID in lower-case text: 48 bits of milliseconds, then 74 of the given random bits.
    package static func make(now: Timestamp, random: (UInt64, UInt64)) -> String { bits(now: now, random: random).text }

    static func bits(now: Timestamp, random: (UInt64, UInt64)) -> UUIDBits {
        let time = UInt64(clamping: now.milliseconds) & 0xFFFF_FFFF_FFFF
        let high = time << 16 | 0x7000 | random.0 & 0x0FFF
        let low = random.1 & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000
        return UUIDBits(high: high, low: low)
    }
}
