// A credential that an upstream accepted.
package import RockpoolCore

/// A credential that the upstream has accepted, by its name (an HMAC, see `identityName`), with its principal.
package struct ProvedCredential: Hashable, Sendable {
    package var name: String
    package var principal: String
    /// The last time it was known to be accepted.
    package var at: Timestamp

    package init(name: String, principal: String, at: Timestamp) {
        self.name = name
        self.principal = principal
        self.at = at
    }
}
