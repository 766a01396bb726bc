// IPv4 and IPv6 addresses (RFC 4291, RFC 5952, RFC 6052, RFC 3056), ranges of them, and the ranges that are never connected to.

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

/// Parses addresses in one strict notation per family (RFC 3986 §3.2.2): no octal, no hex, no short forms, no zone.
extension IPAddress {
    /// Parses `127.0.0.1` or `fd00::1`; nil for everything else.
    package init?(_ text: some StringProtocol) {
        let text = Substring(text)
        guard text.utf8.count <= 45 else { return nil }
        guard let address = text.utf8.contains(UInt8(ascii: ":")) ? Self.sixes(in: text) : Self.quad(in: text) else { return nil }
        self = address
    }

    /// Four decimal numbers without leading zeros.
    private static func quad(in text: Substring) -> IPAddress? {
        var (bits, octet, digits, dots): (UInt32, UInt32, Int, Int) = (0, 0, 0, 0)
        for byte in text.utf8 {
            if byte == UInt8(ascii: ".") {
                guard digits > 0, dots < 3 else { return nil }
                (bits, octet, digits, dots) = (bits << 8 | octet, 0, 0, dots + 1)
            } else {
                guard byte.isDigit, digits == 0 || octet > 0 else { return nil }
                (octet, digits) = (octet * 10 + UInt32(byte - UInt8(ascii: "0")), digits + 1)
                guard octet <= 255 else { return nil }
            }
        }
        guard dots == 3, digits > 0 else { return nil }
        return IPAddress(family: .v4, bits: UInt128(bits << 8 | octet))
    }

    /// Eight groups; one run may be written as `::`, and the last two may be a dotted quad.
    private static func sixes(in text: Substring) -> IPAddress? {
        guard let (head, tail) = halves(in: text), let front = groups(in: head, mayEndInQuad: tail == nil) else { return nil }
        guard let tail else { return front.count == 8 ? join(front) : nil }
        guard let back = groups(in: tail, mayEndInQuad: true), front.count + back.count <= 7 else { return nil }
        return join(front + Array(repeating: 0, count: 8 - front.count - back.count) + back)
    }

    /// The parts before and after `::`; nil if it occurs more than once, and a nil second part without it.
    private static func halves(in text: Substring) -> (Substring, Substring?)? {
        let parts = text.split(separator: "::", omittingEmptySubsequences: false)
        switch parts.count {
        case 1: return (parts[0], nil)
        case 2: return (parts[0], parts[1])
        default: return nil
        }
    }

    private static func groups(in text: Substring, mayEndInQuad: Bool) -> [UInt16]? {
        guard !text.isEmpty else { return [] }
        var groups: [UInt16] = []
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        for (index, part) in parts.enumerated() {
            if mayEndInQuad, index == parts.count - 1, let quad = quad(in: part) {
                groups += [UInt16(quad.bits >> 16), UInt16(quad.bits & 0xFFFF)]
            } else if (1...4).contains(part.utf8.count), part.utf8.allSatisfy(\.isHexDigit), let group = UInt16(part, radix: 16) {
                groups.append(group)
            } else {
                return nil
            }
        }
        return groups
    }

    private static func join(_ groups: [UInt16]) -> IPAddress {
        IPAddress(family: .v6, bits: groups.reduce(0) { $0 << 16 | UInt128($1) })
    }
}

/// A network prefix (RFC 4632 §3.1).
package struct CIDR: Hashable, Sendable, CustomStringConvertible {
    /// The first address.
    package let network: IPAddress
    /// The number of leading bits that are compared: 0…32 or 0…128.
    package let prefix: Int

    /// Parses `address/prefix` or a single address; nil for anything else. Bits past the prefix are cleared.
    package init?(_ text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard let first = parts.first, let address = IPAddress(first), parts.count <= 2 else { return nil }
        let width = Self.width(of: address.family)
        guard let prefix = parts.count == 1 ? width : Self.prefix(in: parts[1], width: width) else { return nil }
        self.prefix = prefix
        network = IPAddress(
            family: address.family, bits: Self.leading(of: address.bits, prefix: prefix, width: width) << UInt128(width - prefix))
    }

    /// True if the address, or the IPv4 address embedded in it, is in the range.
    package func contains(_ address: IPAddress) -> Bool {
        holds(address) || address.embedded.map(holds) ?? false
    }

    /// `address/prefix`, in canonical form.
    package var description: String { "\(network)/\(prefix)" }

    private func holds(_ address: IPAddress) -> Bool {
        let width = Self.width(of: network.family)
        return address.family == network.family
            && Self.leading(of: address.bits, prefix: prefix, width: width) == Self.leading(of: network.bits, prefix: prefix, width: width)
    }

    private static func width(of family: IPAddress.Family) -> Int { family == .v4 ? 32 : 128 }

    private static func leading(of bits: UInt128, prefix: Int, width: Int) -> UInt128 { bits >> UInt128(width - prefix) }

    private static func prefix(in text: Substring, width: Int) -> Int? {
        guard text.isDigits, text.utf8.count <= 3, let prefix = Int(text), prefix <= width else { return nil }
        return prefix
    }
}

extension [CIDR] {
    /// True if a client at this address may connect: it runs on this machine, or is in one of these networks (`proxy.allow`).
    package func admits(_ client: IPAddress) -> Bool {
        client.meansLoopback || contains { $0.contains(client) }
    }
}

/// Checks an address after resolution, at every attempt, because the same name may resolve differently the next time
/// (docs/security-model.md#addresses, server-side request forgery).
package struct AddressPolicy: Hashable, Sendable {
    private let deny: [CIDR]

    /// `deny` extends the built-in list. Private networks are allowed, because a local proxy serves local APIs.
    package init(deny: [CIDR]) { self.deny = deny }

    /// The reason why `address` must not be connected to; nil if it may be. An embedded IPv4 address is checked too.
    package func refusal(of address: IPAddress, loopbackAllowed: Bool) -> String? {
        for form in [address, address.embedded].compactMap(\.self) {
            if let reason = Self.refusal(ofForm: form, loopbackAllowed: loopbackAllowed) { return "\(address): \(reason)" }
        }
        return deny.first { $0.contains(address) }.map { "\(address): within \($0), which is denied" }
    }

    /// The reason why a request for `host` must not be passed to a parent proxy, which resolves names itself; nil for a name.
    package func refusal(ofTarget host: String, loopbackAllowed: Bool) -> String? {
        IPAddress(host).flatMap { refusal(of: $0, loopbackAllowed: loopbackAllowed) }
    }

    private static func refusal(ofForm address: IPAddress, loopbackAllowed: Bool) -> String? {
        if address.isUnspecified { return "the unspecified address" }
        if address.isMulticast { return "a multicast address" }
        if metadata.contains(address) { return "a cloud's metadata service" }
        if address == broadcast { return "the broadcast address" }
        if address.isLoopback, !loopbackAllowed { return "a loopback address, open only to declared upstreams" }
        return nil
    }

    private static let broadcast = IPAddress("255.255.255.255")
    /// The metadata addresses of Alibaba Cloud and Amazon, which lie outside the link-local ranges.
    private static let metadata = Set(["100.100.100.200", "fd00:ec2::254"].compactMap { IPAddress($0) })
}
