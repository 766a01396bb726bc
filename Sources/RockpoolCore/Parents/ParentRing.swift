// Which gateway of a site holds a response, by rendezvous hashing (docs/fleet.md#caches).

/// The gateways of one site. Every one of them finds the same order for a key, whatever the order of its list.
package struct ParentRing: Hashable, Sendable {
    package let nodes: [String]
    /// The name of this gateway among them; nil if it is none of them.
    package let own: String?

    /// - Parameter nodes: addresses, `own` included: a ring without it would give its keys to others.
    package init(nodes: [String], own: String?) { (self.nodes, self.own) = (nodes, own) }

    /// Returns the gateways by their weight for a key, the owner first. Without one of them, the order of the others is the same.
    package func order(for key: String) -> [String] {
        nodes.map { (node: $0, weight: Self.weight(of: $0, for: key)) }
            .sorted { ($0.weight, $0.node) > ($1.weight, $1.node) }.map(\.node)
    }

    /// FNV-1a, and the finalizer of SplitMix64, which spreads names that differ in one digit.
    private static func weight(of node: String, for key: String) -> UInt64 {
        var names = FNV1a()
        names.add(node.utf8)
        names.add(0x0A)
        names.add(key.utf8)
        var hash = names.value
        hash = (hash ^ (hash >> 30)) &* 0xBF58_476D_1CE4_E5B9
        hash = (hash ^ (hash >> 27)) &* 0x94D0_49BB_1331_11EB
        return hash ^ (hash >> 31)
    }
}
