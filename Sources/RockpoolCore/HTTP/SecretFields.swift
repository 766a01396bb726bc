// Fields whose values are secrets: they are written into no file and no document (security.md; contract §6 *credentials*).
package import HTTPTypes

/// Names of fields that carry credentials, by registration or by common use.
package enum SecretFields {
    private static let names: Set<String> = [
        "authorization", "proxy-authorization", "cookie", "set-cookie", "set-cookie2", "www-authenticate", "proxy-authenticate",
        "authentication-info", "proxy-authentication-info", "api-key", "apikey", "x-api-key", "x-auth-token", "x-access-token",
        "x-session-token", "x-csrf-token", "x-xsrf-token", "x-amz-security-token", "x-goog-api-key", "private-token", "x-gitlab-token",
        "dpop", "token",
    ]

    /// Whether the value of such a field is a secret.
    package static func contains(_ name: HTTPField.Name) -> Bool { names.contains(name.canonicalName) }

    /// The fields that may be shown.
    package static func removed(from fields: HTTPFields) -> HTTPFields { HTTPFields(fields.filter { !contains($0.name) }) }
}
