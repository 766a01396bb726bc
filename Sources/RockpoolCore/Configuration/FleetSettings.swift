// The settings of a gateway among others: the caches of its site, the office that it reports to (docs/reference/configuration.md#fleet),
// and the outbox that a fleet shares.

/// What a gateway has to do with others.
package struct FleetSettings: Hashable, Sendable {
    /// The proxy listeners of all gateways of the site, which share what their caches hold; empty: none.
    package var parents: [String] = []
    /// The one of `parents` that is this gateway.
    package var own: String?
    /// The reports to a collector; nil: none.
    package var report: SiteReportSettings?

    package init() {}
}

/// The reports of a site to a collector (`rockpool fleet collect`).
package struct SiteReportSettings: Hashable, Sendable {
    /// Where reports are posted.
    package var url: String
    /// The name under which the collector knows this site.
    package var site: String
    /// The file with the signing secret.
    package var secretFile: String
    package var every = TimeSpan.minutes(5)

    package init(url: String, site: String, secretFile: String) {
        (self.url, self.site, self.secretFile) = (url, site, secretFile)
    }
}

/// What decides how a queued write is ordered, sent and kept, by key and as text (docs/fleet.md#settings).
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

/// Where the outbox is kept: in this node's SQLite alone, or in a PostgreSQL that a fleet shares (docs/reference/configuration.md#outbox).
package struct OutboxSettings: Hashable, Sendable {
    package var store = OutboxEngine.sqlite
    /// The address of the shared database, `postgresql://…`, without a password.
    package var url: String?
    /// A private file with the address, which may hold a password. Takes precedence over `url`.
    package var urlFile: String?
    /// The name of this node in lists; nil: the host's name.
    package var node: String?
    /// True to refuse a database whose acknowledgement does not survive the loss of its host.
    package var requiresSynchronous = false
    package var whenUnreachable = OutboxAbsence.local

    package init() {}
}

/// The engine that orders the outbox.
package enum OutboxEngine: String, CaseIterable, Hashable, Sendable, Codable {
    case sqlite, postgresql
}

/// What happens to a write while the shared database is away.
package enum OutboxAbsence: String, CaseIterable, Hashable, Sendable {
    /// This node keeps it and hands it over later.
    case local
    /// It is refused with 503.
    case refuse
}
