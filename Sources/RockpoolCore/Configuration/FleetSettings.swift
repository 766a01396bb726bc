// The settings that the nodes of a fleet must have in common (docs/fleet.md#settings).

/// What decides how a queued write is ordered, sent and kept, by key and as text.
package struct AgreedSettings: Hashable, Sendable {
    private let values: [String: String]

    package init(values: [String: String]) { self.values = values }

    /// - Returns: nil unless the text is what another node wrote.
    package init?(text: String) {
        guard let members = (try? JSONValue.parse(Array(text.utf8)))?.object else { return nil }
        values = Dictionary(members.map { ($0, $1.string ?? "") }) { first, _ in first }
    }

    /// The settings for other nodes: equal settings give equal text.
    package var text: String {
        let members = values.sorted { $0.key < $1.key }.map { ($0.key, JSONValue.string($0.value)) }
        return String(decoding: JSONValue.object(JSONObject(members)).serialized(), as: UTF8.self)
    }

    /// The keys with different values, or that only one of the two has, in order. An upstream that only one has is named once.
    package func differences(from other: AgreedSettings) -> [String] {
        let all = Set(values.keys).union(other.values.keys)
        let alone = all.filter { $0.hasSuffix(Self.origin) && (values[$0] == nil) != (other.values[$0] == nil) }
            .map { String($0.dropLast(Self.origin.count)) }
        let changed = all.filter { key in
            values[key] != other.values[key] && !alone.contains { key.hasPrefix($0 + ".") }
        }
        return (changed + alone).sorted()
    }

    /// The end of a key that each upstream has.
    private static let origin = ".origin"
}

/// A node whose settings differ.
package struct FleetDifference: Hashable, Sendable {
    /// The id of the node, and its name.
    package let node: String
    package let name: String
    package let keys: [String]

    package init(node: String, name: String, keys: [String]) { (self.node, self.name, self.keys) = (node, name, keys) }

    /// The keys in one line: the first of many.
    package var words: String {
        let shown = keys.prefix(Self.shownKeys).joined(separator: ", ")
        return keys.count > Self.shownKeys ? "\(shown) and \(keys.count - Self.shownKeys) more" : shown
    }

    private static let shownKeys = 5

    /// What differs, in words.
    package var advice: String { "\(name) has other settings: \(words)" }
}
