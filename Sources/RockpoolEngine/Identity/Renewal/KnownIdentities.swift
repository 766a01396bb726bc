// Lists identities, and forgets those that log out (docs/outbox.md#forgotten).
import Logging
package import RockpoolCore
import RockpoolStore

/// The identities of which copies, credentials or writes are kept.
package final class KnownIdentities: Sendable {
    private let data: DataStore
    private let cache: CacheStore
    private let credentials: Credentials
    private let renewals: Renewals
    private let learning: ResourceLearning
    private let active: ActiveConfiguration
    private let logger: Logger

    init(
        data: DataStore, cache: CacheStore, credentials: Credentials, renewals: Renewals, learning: ResourceLearning,
        active: ActiveConfiguration, logger: Logger
    ) {
        self.data = data
        self.cache = cache
        self.credentials = credentials
        self.renewals = renewals
        self.learning = learning
        self.active = active
        self.logger = logger
    }

    /// Returns every identity of which something is stored, sorted by name.
    /// - Throws: `DataStoreError`, `DatabaseError`.
    package func list() async throws -> [KnownIdentity] {
        var known: [String: KnownIdentity] = [:]
        func change(_ name: String, _ change: (inout KnownIdentity) -> Void) {
            let name = credentials.resolved(name)
            change(&known[name, default: KnownIdentity(name: name)])
        }
        let names = Dictionary(active.configuration.upstreams.map { ($0.origin.url, $0.name) }) { first, _ in first }
        for copies in try await cache.copiesByIdentity() {
            change(copies.identity) {
                $0.upstreams.insert(names[copies.origin] ?? copies.origin)
                $0.entries += copies.entries
                $0.bytes += copies.bytes
                $0.usedAt = max($0.usedAt ?? copies.usedAt, copies.usedAt)
            }
        }
        for writes in try await data.waitingWrites() {
            change(writes.principal) {
                $0.upstreams.insert(writes.upstream)
                $0.waiting += writes.count
            }
        }
        for (principal, upstream) in try await data.sealedPrincipals() {
            change(principal) {
                $0.upstreams.insert(upstream)
                $0.isSealed = true
            }
        }
        for principal in credentials.livePrincipals { change(principal) { $0.hasCredential = true } }
        return known.values.filter(\.isKept).sorted { $0.name < $1.name }
    }

    /// Removes the copies and credentials of one identity. Its waiting writes stay, and park until its client shows a credential again.
    /// - Parameter origin: Nil removes the copies from every origin.
    /// - Throws: `DataStoreError`, `DatabaseError`; what was removed before the error stays removed.
    package func forget(_ name: String, origin: OriginAddress? = nil) async throws -> ForgottenIdentity {
        var forgotten = ForgottenIdentity()
        guard !StoragePartition.nobodys.map(\.name).contains(name) else {
            for upstream in active.configuration.upstreams where origin == nil || upstream.origin == origin {
                try await data.forgetPulls(of: upstream.name)
            }
            forgotten.add(try await cache.forget(.identity(name), origin: origin))
            return forgotten
        }
        let names = credentials.names(of: name)
        let principal = names[0]
        let isSealed = try await data.sealedPrincipals()[principal] != nil
        let isWaited = try await !data.waitingIDs(of: principal).isEmpty
        forgotten.hadCredential = credentials.drop(principal, withProofs: !isWaited) || isSealed
        renewals.forget(principal)
        try await data.forget(principal: principal)
        for name in names {
            forgotten.add(try await cache.forget(.identity(name)))
            await learning.forget(identity: name)
        }
        return forgotten
    }

    /// Forgets the identity of a client that has logged out of an upstream. Failures are logged.
    func end(_ identity: Identity, at upstream: Upstream) async {
        let identity = credentials.current(identity)
        do {
            if let principal = identity.principal { _ = try await forget(principal) }
            switch identity.partition {
            case "": _ = try await forget(StoragePartition.single.name, origin: upstream.origin)
            case let partition? where partition != identity.principal: _ = try await forget(partition)
            default: break
            }
            logger.info("a client has logged out of \(upstream.name); its copies and credentials are removed")
        } catch { logger.failed("a client has logged out, and its copies were not removed", error: error) }
    }
}

/// What is kept of one identity (docs/reference/admin-api.md#identities).
package struct KnownIdentity: Hashable, Sendable {
    /// The name of its partition and of its principal; `anonymous` and `single` are partitions without a principal.
    package var name: String
    /// The upstreams of its copies and writes: names, or origins of undeclared hosts.
    package var upstreams: Set<String> = []
    package var entries = 0
    /// The size of its copies.
    package var bytes: Int64 = 0
    /// The number of its writes that have not ended.
    package var waiting = 0
    /// True if a live credential is known.
    package var hasCredential = false
    /// True if a credential is sealed on the disk.
    package var isSealed = false
    /// When a copy was last used; nil without copies.
    package var usedAt: Timestamp?
}

extension KnownIdentity {
    /// True if something is stored for the identity. Otherwise its client has only shown a credential since the start.
    fileprivate var isKept: Bool { entries > 0 || waiting > 0 || isSealed }
}

/// What was removed of one identity.
package struct ForgottenIdentity: Hashable, Sendable {
    package var copies = 0
    /// The size of the removed copies.
    package var bytes: Int64 = 0
    /// True if a credential was dropped.
    package var hadCredential = false
}

extension ForgottenIdentity {
    fileprivate mutating func add(_ removed: RemovalCount) {
        copies += removed.entries
        bytes += removed.bytes
    }
}
