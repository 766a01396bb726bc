// One identity as it is listed, and the result of forgetting it (docs/reference/admin-api.md#identities).
package import RockpoolCore

/// What is kept of one identity.
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

/// What was removed of one identity.
package struct ForgottenIdentity: Hashable, Sendable {
    package var copies = 0
    /// The size of the removed copies.
    package var bytes: Int64 = 0
    /// True if a credential was dropped.
    package var hadCredential = false
}
