// Whose part of the outbox a write takes, and how large that is: no client fills it for all others (contract §7 *queue shares*).

/// The part of `storage.data_limit` that an operation counts against for as long as it is open.
package enum OutboxShare: Hashable, Sendable, CaseIterable {
    /// Its principal's own.
    case principal
    /// That of all who show no credential, at declared upstreams that have never accepted one. An API without credentials has no other
    /// writers: together they have as much as one principal.
    case nobody
    /// The one of everybody else together: no upstream has accepted their credential, or they show none where others do.
    case unproved

    /// The share of an operation.
    ///
    /// - Parameters:
    ///   - principal: Whose it is; nil without a credential.
    ///   - isProved: Whether an upstream has accepted a credential of this principal.
    ///   - takesCredentials: Whether the operation's upstream has ever accepted anybody's, or is not declared.
    package init(principal: String?, isProved: Bool, takesCredentials: Bool) {
        if principal == nil {
            self = takesCredentials ? .unproved : .nobody
        } else {
            self = isProved ? .principal : .unproved
        }
    }

    /// Its size in bytes, of a `storage.data_limit` of so many.
    package func bytes(of limit: Int64, _ settings: StorageSettings) -> Int64 {
        switch self {
        case .principal, .nobody: limit.percent(settings.principalSharePercent)
        case .unproved: limit.percent(settings.unprovedSharePercent)
        }
    }

    /// Which one it is and what sets it, for whoever was refused; reads on as `… is used up`. Says nothing of what others have in it.
    package var words: String {
        switch self {
        case .principal: "the share of the outbox that this client's identity has (storage.principal_share)"
        case .nobody: "the share of the outbox for clients without a credential (storage.principal_share)"
        case .unproved: "the share of the outbox for all clients whose credential no upstream has accepted (storage.unproved_share)"
        }
    }
}
