// Undeclared hosts that writes wait for: upstreams like any other, made of the defaults (docs/reference/configuration.md#defaults,
// `defaults.queue_writes`).
import RockpoolCore
import RockpoolStore

extension Engine {
    /// Hosts that may be waited for without having been declared.
    package static let adoptedLimit = 256

    /// Makes an undeclared host known before a write to it is kept: from then on it is probed, listed and switched as others are.
    ///
    /// - Throws: `TooManyHosts`; `DataStoreError` when the outbox cannot say which hosts are still waited for.
    func adopt(_ upstream: Upstream) async throws {
        guard routes.upstream(named: upstream.name) == nil else { return }
        if routes.adopted.count >= Self.adoptedLimit {
            let waitedFor = Self.undeclaredHosts(of: try await data.openOperations())
            _ = changeAdopted { $0.formIntersection(waitedFor) }
        }
        guard changeAdopted(limit: Self.adoptedLimit, { $0.insert(upstream.origin) }) else { throw TooManyHosts() }
    }

    /// Knows the undeclared hosts that `operations` wait for, however many: what was acknowledged is delivered.
    func adoptHosts(of operations: [RockpoolCore.Operation]) {
        let missing = operations.filter { routes.upstream(named: $0.upstream) == nil }
        if !missing.isEmpty { _ = changeAdopted { $0.formUnion(Self.undeclaredHosts(of: missing)) } }
    }

    /// The operations of declared upstreams are under names that are no URLs.
    private static func undeclaredHosts(of operations: [RockpoolCore.Operation]) -> Set<OriginAddress> {
        Set(operations.filter { $0.upstream == $0.request.origin.url }.map(\.request.origin))
    }
}

/// A write to one undeclared host more than may be waited for.
struct TooManyHosts: Error, CustomStringConvertible {
    var description: String { "writes wait for \(Engine.adoptedLimit) undeclared hosts already; declare this one" }
}
