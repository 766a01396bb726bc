// An address range as in the configuration: `169.254.0.0/16`, `fe80::/10`, or one address (RFC 4632 §3.1).

/// A network prefix.
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
