// Whose response it is: the part of the cache an entry lives in and may be read from (design §5 *Identity*, security.md §3).

/// A partition of the cache. Nothing is ever read across partitions, offline neither.
package enum StoragePartition: Hashable, Sendable {
    /// Anyone's.
    case shared
    /// One identity's, by its name; never empty.
    case identity(String)

    /// Holds what is private but came without any credential, on upstreams whose owner wants it kept.
    package static let anonymous = StoragePartition.identity("anonymous")
    /// The only user's, on upstreams with `identity: single`: a private cache (RFC 9111 §1), whatever the credential. Not the shared one,
    /// where it would be everybody's once the configuration says otherwise.
    package static let single = StoragePartition.identity("single")

    /// Those that no credential is needed to fill.
    package static let nobodys: [StoragePartition] = [.shared, .anonymous, .single]

    /// The name in a cache key; empty for the shared one.
    package var name: String {
        switch self {
        case .shared: ""
        case .identity(let name): name
        }
    }

    /// Where a request's own responses live.
    /// - Parameter identity: Nil without credentials; empty where the upstream's `identity: single` switched partitions off.
    package static func own(_ identity: String?) -> StoragePartition {
        switch identity {
        case nil: .anonymous
        case "": .single
        case .some(let identity): .identity(identity)
        }
    }

    /// The partitions a request may be answered from, its own first.
    package static func readable(by identity: String?) -> [StoragePartition] { [own(identity), .shared] }
}
