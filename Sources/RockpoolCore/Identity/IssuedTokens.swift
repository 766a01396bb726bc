// The tokens of a refresh (RFC 6749 §5.1).

/// The tokens issued by a token endpoint.
package struct IssuedTokens: Hashable, Sendable {
    /// The access token.
    package var access: String
    /// Nil: the previous refresh token stays valid.
    package var refresh: String?

    package init(access: String, refresh: String? = nil) {
        self.access = access
        self.refresh = refresh
    }

    /// The access token as the value of `Authorization` (RFC 6750 §2.1).
    package var authorization: String { "Bearer \(access)" }
}
