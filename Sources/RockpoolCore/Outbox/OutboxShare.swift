// The share of the outbox that a write counts against: no client can fill the outbox for all others (docs/reference/behaviour.md#shares
// *queue shares*).

/// The part of the usable bytes of `storage.data_limit` that an operation counts against for as long as it is open.
package enum OutboxShare: Hashable, Sendable, CaseIterable {
    /// The share of its own principal.
    case principal
    /// The common share of all clients without a credential, at declared upstreams that have never accepted one. An API without credentials
    /// has no other writers, so together they have as much as one principal.
    case nobody
    /// The common share of all other clients: no upstream has accepted their credential, or they send none where others do.
    case unproved

    /// Selects the share of an operation.
    ///
    /// - Parameters:
    ///   - principal: The write's principal; nil without a credential.
    ///   - isProved: True if an upstream has accepted a credential of this principal.
    ///   - takesCredentials: True if the operation's upstream has ever accepted a credential, or is not declared.
    package init(principal: String?, isProved: Bool, takesCredentials: Bool) {
        if principal == nil {
            self = takesCredentials ? .unproved : .nobody
        } else {
            self = isProved ? .principal : .unproved
        }
    }

    /// Returns its size in bytes where operations can take `usable` bytes.
    package func bytes(of usable: Int64, settings: StorageSettings) -> Int64 {
        switch self {
        case .principal, .nobody: usable.percent(settings.principalSharePercent)
        case .unproved: usable.percent(settings.unprovedSharePercent)
        }
    }

    /// The name of the share and its setting, for the refused client; continued as `… is used up`. The text does not reveal other clients'
    /// use.
    package var words: String {
        switch self {
        case .principal: "the share of the outbox that this client's identity has (storage.principal_share)"
        case .nobody: "the share of the outbox for clients without a credential (storage.principal_share)"
        case .unproved: "the share of the outbox for all clients whose credential no upstream has accepted (storage.unproved_share)"
        }
    }
}
