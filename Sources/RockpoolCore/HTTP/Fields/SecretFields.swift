// Fields with secret values, which are never written to a file or a document (docs/security-model.md#credentials-and-secrets;
// docs/reference/behaviour.md#credentials *credentials*).
package import HTTPTypes

/// Names of fields that carry credentials, by registration or by common use.
package enum SecretFields {
    /// Request fields that identify the client: a response to one value must not be served to a request with another.
    package static let identifying: [HTTPField.Name] = [
        "authorization", "cookie", "api-key", "apikey", "x-api-key", "x-auth-token", "x-access-token", "x-session-token",
        "x-amz-security-token", "x-goog-api-key", "private-token", "x-gitlab-token", "token",
    ].compactMap { HTTPField.Name($0) }

    /// Further secrets: fields with a new value in each request, fields of the connection, fields of responses, and the owner of a shared copy.
    static let others = [
        "x-csrf-token", "x-xsrf-token", "dpop", "proxy-authorization", "set-cookie", "set-cookie2", "www-authenticate",
        "proxy-authenticate", "authentication-info", "proxy-authentication-info", "rockpool-owner",
    ]

    /// All of them.
    package static let all = identifying + others.compactMap { HTTPField.Name($0) }

    private static let otherNames = FieldNameTable(others.map { ($0, true) })

    /// True if the field's value is a secret.
    package static func contains(_ name: HTTPField.Name) -> Bool {
        otherNames.value(of: name.canonicalName.utf8.span) != nil || UnkeyedField.carriesKey(name)
    }

    /// True if the field identifies the client, by its name or by the words of it (`UnkeyedField`).
    package static func identifies(_ name: HTTPField.Name) -> Bool { UnkeyedField(name) == .identifies }

    /// The fields without the secret ones.
    package static func removed(from fields: HTTPFields) -> HTTPFields { HTTPFields(fields.filter { !contains($0.name) }) }
}
