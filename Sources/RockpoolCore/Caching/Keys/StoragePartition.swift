// The partition of the cache that an entry is stored in and may be read from (docs/caching.md#partitions *Identity*,
// docs/security-model.md#partitions).

/// A partition of the cache. Entries are never read across partitions, not even offline.
package enum StoragePartition: Hashable, Sendable {
    /// Readable by every client.
    case shared
    /// Belongs to the identity of this name; never empty.
    case identity(String)

    /// Holds private responses received without a credential, on upstreams configured to store them.
    package static let anonymous = StoragePartition.identity("anonymous")
    /// Belongs to the only user, on upstreams with `identity: single`: a private cache (RFC 9111 §1), whatever the credential. It is
    /// separate from the shared partition, whose entries would become readable by every client after a configuration change.
    package static let single = StoragePartition.identity("single")

    /// Holds what registries keep for all whom they let in, and whom they have let in. It is read only for a client that was let in.
    package static let registry = StoragePartition.identity("registry")

    /// Partitions that can be filled without a credential.
    package static let nobodys: [StoragePartition] = [.shared, .anonymous, .single, .registry]

    /// The name in a cache key; empty for the shared one.
    package var name: String {
        switch self {
        case .shared: ""
        case .identity(let name): name
        }
    }

    /// The partition of a request's own responses.
    /// - Parameter identity: Nil without credentials; empty if the upstream's `identity: single` disables partitions.
    package static func own(_ identity: String?) -> StoragePartition {
        switch identity {
        case nil: .anonymous
        case "": .single
        case .some(let identity): .identity(identity)
        }
    }

    /// The partitions a request may be served from, its own first.
    package static func readable(by identity: String?) -> [StoragePartition] { [own(identity), .shared] }
}
