// IPv4 and IPv6 addresses, and IPv4 addresses embedded in IPv6 (RFC 4291, RFC 5952, RFC 6052, RFC 3056).

/// An address of either family, as a number.
package struct IPAddress: Hashable, Sendable {
    /// The two versions of the protocol.
    package enum Family: Hashable, Sendable { case v4, v6 }

    /// The protocol version; `::ffff:1.2.3.4` is an IPv6 address.
    package let family: Family
    /// The address in host order; an IPv4 address is in the low 32 bits.
    let bits: UInt128

    init(family: Family, bits: UInt128) {
        self.family = family
        self.bits = bits
    }

    /// Creates an address from the four bytes of `in_addr`, most significant first; nil for another number of bytes.
    package init?(v4 bytes: [UInt8]) {
        guard bytes.count == 4 else { return nil }
        self.init(family: .v4, bits: bytes.reduce(0) { $0 << 8 | UInt128($1) })
    }

    /// Creates an address from the sixteen bytes of `in6_addr`, most significant first; nil for another number of bytes.
    package init?(v6 bytes: [UInt8]) {
        guard bytes.count == 16 else { return nil }
        self.init(family: .v6, bits: bytes.reduce(0) { $0 << 8 | UInt128($1) })
    }

    /// The IPv4 address that a packet to this one may reach: v4-mapped and v4-compatible (RFC 4291 §2.5.5), NAT64 (RFC 6052, RFC 8215),
    /// 6to4 (RFC 3056). Nil for any other address.
    package var embedded: IPAddress? {
        guard family == .v6 else { return nil }
        let low = bits & 0xFFFF_FFFF
        switch bits >> 32 {
        case 0 where low > 1, 0xFFFF, 0x0064_FF9B_0000_0000_0000_0000: return IPAddress(family: .v4, bits: low)
        default: break
        }
        if bits >> 80 == 0x0064_FF9B_0001 { return IPAddress(family: .v4, bits: low) }
        return bits >> 112 == 0x2002 ? IPAddress(family: .v4, bits: bits >> 80 & 0xFFFF_FFFF) : nil
    }

    /// The address's bytes, most significant first: four or sixteen.
    package var octets: [UInt8] {
        (0..<(family == .v4 ? 4 : 16)).reversed().map { UInt8(truncatingIfNeeded: bits >> UInt128($0 * 8)) }
    }

    /// 127.0.0.0/8 or ::1.
    package var isLoopback: Bool { family == .v4 ? bits >> 24 == 127 : bits == 1 }
    /// True if it, or the IPv4 address embedded in it (`embedded`), is a loopback address.
    package var meansLoopback: Bool { (embedded ?? self).isLoopback }
    /// 224.0.0.0/4 or ff00::/8.
    package var isMulticast: Bool { family == .v4 ? bits >> 28 == 0xE : bits >> 120 == 0xFF }
    /// 0.0.0.0 or ::, which connects to the machine itself.
    package var isUnspecified: Bool { bits == 0 }
}

extension IPAddress: CustomStringConvertible {
    /// Dotted decimal, or the canonical form of RFC 5952.
    package var description: String {
        family == .v4 ? dotted : grouped
    }

    private var dotted: String {
        [24, 16, 8, 0].map { String(bits >> UInt128($0) & 0xFF) }.joined(separator: ".")
    }

    private var grouped: String {
        let groups = (0..<8).map { UInt16(truncatingIfNeeded: bits >> UInt128(112 - 16 * $0)) }
        let zeros = Self.longestZeros(in: groups)
        let text = { (range: Range<Int>) in groups[range].map { String($0, radix: 16) }.joined(separator: ":") }
        guard let zeros else { return text(0..<8) }
        return text(0..<zeros.lowerBound) + "::" + text(zeros.upperBound..<8)
    }

    /// The first of the longest runs of two or more zero groups.
    private static func longestZeros(in groups: [UInt16]) -> Range<Int>? {
        var longest: Range<Int>?
        var start = 0
        for index in groups.indices {
            guard groups[index] == 0 else {
                start = index + 1
                continue
            }
            if index - start + 1 > max(1, longest?.count ?? 0) { longest = start..<(index + 1) }
        }
        return longest
    }
}
