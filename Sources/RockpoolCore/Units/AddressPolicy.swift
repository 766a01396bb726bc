// Resolved addresses that are never connected to (docs/security-model.md#addresses, server-side request forgery).

/// Checks an address after resolution, at every attempt, because the same name may resolve differently the next time.
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
