// Which resolved addresses are never connected to (security.md §4, server-side request forgery).

/// Judges an address after resolution, at every attempt: a name that was checked can resolve differently a moment later.
package struct AddressPolicy: Hashable, Sendable {
    private let deny: [CIDR]

    /// `deny` comes beside what is never allowed. Private networks are allowed: a local proxy serves local APIs.
    package init(deny: [CIDR]) { self.deny = deny }

    /// Why no connection may be made to `address`; nil when one may. An embedded IPv4 address counts like itself.
    package func refusal(of address: IPAddress, loopbackAllowed: Bool) -> String? {
        for form in [address, address.embedded].compactMap(\.self) {
            if let reason = Self.refusal(ofForm: form, loopbackAllowed: loopbackAllowed) { return "\(address): \(reason)" }
        }
        return deny.first { $0.contains(address) }.map { "\(address): within \($0), which is denied" }
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
    /// Alibaba Cloud's and Amazon's, which lie outside the link-local ranges.
    private static let metadata = Set(["100.100.100.200", "fd00:ec2::254"].compactMap { IPAddress($0) })
}
