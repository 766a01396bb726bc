// A credential sealed at rest.
package import HTTPTypes
package import RockpoolCore

/// A stored credential.
package struct SealedCredential: Hashable, Sendable {
    package var principal: String
    /// Name of the declared upstream.
    package var upstream: String
    /// The header fields that carry it.
    package var secrets: HTTPFields
    /// The last time it was known to be accepted.
    package var at: Timestamp

    package init(principal: String, upstream: String, secrets: HTTPFields, at: Timestamp) {
        self.principal = principal
        self.upstream = upstream
        self.secrets = secrets
        self.at = at
    }
}
