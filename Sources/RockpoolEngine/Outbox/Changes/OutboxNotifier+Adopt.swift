// Adopts undeclared hosts that queued writes need: each becomes an upstream with the default settings
// (docs/reference/configuration.md#defaults, `defaults.queue_writes`).
import RockpoolCore
import RockpoolStore

extension OutboxNotifier {
    /// Maximum number of undeclared hosts for which writes may be queued.
    package static let adoptedLimit = 256

    /// Registers an undeclared host before a write to it is stored: from then on it is probed, listed and switched like a declared
    /// upstream.
    ///
    /// - Throws: `TooManyHosts`; `DataStoreError` when the open operations cannot be read.
    func adopt(_ upstream: Upstream) async throws {
        guard active.routes.upstream(named: upstream.name) == nil else { return }
        if active.routes.adopted.count >= Self.adoptedLimit {
            let waitedFor = Self.undeclaredHosts(of: try await data.openOrigins())
            _ = active.changeAdopted { $0.formIntersection(waitedFor) }
        }
        guard active.changeAdopted(limit: Self.adoptedLimit, { $0.insert(upstream.origin) }) else { throw TooManyHosts() }
    }

    /// Registers the undeclared hosts of operations without a limit, because every acknowledged write must be delivered.
    func adoptHosts(of operations: [(upstream: String, origin: OriginAddress)]) {
        let missing = operations.filter { active.routes.upstream(named: $0.upstream) == nil }
        if !missing.isEmpty { _ = active.changeAdopted { $0.formUnion(Self.undeclaredHosts(of: missing)) } }
    }

    /// Returns the origins of operations to undeclared hosts: there the upstream's name is the origin's URL, while a declared name is no
    /// URL.
    private static func undeclaredHosts(of operations: [(upstream: String, origin: OriginAddress)]) -> Set<OriginAddress> {
        Set(operations.filter { $0.upstream == $0.origin.url }.map(\.origin))
    }
}
