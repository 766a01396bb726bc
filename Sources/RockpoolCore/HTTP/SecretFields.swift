// Fields whose values are secrets: they are written into no file and no document (security.md; contract §6 *credentials*).
package import HTTPTypes

/// Names of fields that carry credentials, by registration or by common use.
package enum SecretFields {
    /// Those of requests that say who asks: what is answered to one value is nobody else's.
    package static let identifying: [HTTPField.Name] = [
        "authorization", "cookie", "api-key", "apikey", "x-api-key", "x-auth-token", "x-access-token", "x-session-token",
        "x-amz-security-token", "x-goog-api-key", "private-token", "x-gitlab-token", "token",
    ].compactMap { HTTPField.Name($0) }

    /// Those that are another with each request, beside what says who asks; of the connection; and of answers.
    private static let others = [
        "x-csrf-token", "x-xsrf-token", "dpop", "proxy-authorization", "set-cookie", "set-cookie2", "www-authenticate",
        "proxy-authenticate", "authentication-info", "proxy-authentication-info",
    ]

    /// All of them.
    package static let all = identifying + others.compactMap { HTTPField.Name($0) }

    private static let names = Set(identifying.map(\.canonicalName) + others)

    /// Whether the value of such a field is a secret.
    package static func contains(_ name: HTTPField.Name) -> Bool { names.contains(name.canonicalName) }

    /// The fields that may be shown.
    package static func removed(from fields: HTTPFields) -> HTTPFields { HTTPFields(fields.filter { !contains($0.name) }) }
}
