// The settings of a configuration that all nodes of a fleet must have (docs/fleet.md#settings).
import RockpoolCore

extension AgreedSettings {
    private static let common = [
        ["secrets"], ["defaults", "queue_writes"], ["cleanup", "failed_after"], ["cleanup", "unproved_after"],
        ["outbox", "when_unreachable"], ["outbox", "require_synchronous"],
    ]
    /// Of each upstream. None of them holds a secret.
    private static let ofUpstream = ["origin", "identity", "queue", "idempotency", "order", "rate_limit", "routes", "resources"]

    init(of configuration: Configuration) {
        let document = Configuration.section.show(configuration)
        var found = Self.common.flatMap { keys in
            Self.values(of: keys.reduce(Optional(document)) { $0?[$1] }, at: keys.reduce(.root) { $0.key($1) })
        }
        if case .list(let upstreams)? = document["upstreams"] {
            for upstream in upstreams {
                guard case .text(let name)? = upstream["name"] else { continue }
                let path = KeyPathName.root.key("upstreams").key(name)
                found += Self.ofUpstream.flatMap { Self.values(of: upstream[$0], at: path.key($0)) }
            }
        }
        self.init(values: Dictionary(found) { first, _ in first })
    }

    /// The scalars below a key, and the length of a list.
    private static func values(of document: ConfigDocument?, at path: KeyPathName) -> [(String, String)] {
        guard let document else { return [] }
        let scalars = document.scalars(at: path).map { ($0.key, String(decoding: $0.value.serialized(), as: UTF8.self)) }
        guard case .list(let items) = document, scalars.first?.0 != path.text else { return scalars }
        return scalars + [(path.text, "\(items.count)")]
    }
}
