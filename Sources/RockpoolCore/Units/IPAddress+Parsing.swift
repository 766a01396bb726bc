// Parses addresses in one strict notation per family (RFC 3986 §3.2.2): no octal, no hex, no short forms, no zone.

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
