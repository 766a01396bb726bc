// Fields and parameters of queries with secret values, which are never logged or exported (docs/security-model.md#credentials-and-secrets;
// docs/reference/behaviour.md#credentials *credentials*).
package import HTTPTypes
import Synchronization

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

/// Finds parameters of a query that carry secrets: some clients send credentials there although they should not (RFC 6750 §5.3).
package enum SecretParameters {
    /// A parameter with one of these words in its name is treated as a secret.
    private static let words = [
        "token", "secret", "password", "passwd", "passphrase", "apikey", "api_key", "api-key", "accesskey", "access_key", "auth",
        "signature",
        "credential", "session", "jwt", "assertion",
    ]
    /// Names that are secrets only as a whole word, because they also occur within harmless names.
    private static let names: Set<String> = ["key", "sig", "code", "pwd", "pass", "sid", "otp", "pin"]

    /// Further names, in lower case (docs/reference/configuration.md#secrets). They hold for the whole process, so that no place where a URL is
    /// shown can miss them; what was a secret once stays one.
    private static let added = Mutex<Set<String>>([])

    /// Adds names of the configuration, which count as a whole word.
    package static func add(_ names: [String]) { added.withLock { $0.formUnion(names.map { $0.lowercased() }) } }

    /// True if the value of a parameter of that name, as written in the query, is a secret; a percent-encoded name always counts as one.
    package static func contains(_ name: some StringProtocol) -> Bool {
        let name = name.lowercased()
        return names.contains(name) || words.contains { name.contains($0) } || name.contains("%") || added.withLock { $0.contains(name) }
    }

    /// Returns the URL with secret values replaced by `REDACTED`, without its fragment.
    package static func redacted(url: String) -> String {
        replacing(in: String(withoutUserinfo(url.prefix { $0 != "#" }))) { _, _ in shown }
    }

    /// What stands in the place of a secret value where URLs are shown.
    private static let shown = "REDACTED"

    /// Returns a URL or a target with other values of its secret parameters.
    /// - Parameter isSecret: decides by the name which parameters these are.
    package static func replacing(
        in url: String, where isSecret: (Substring) -> Bool = { contains($0) }, _ value: (_ name: String, _ value: String) throws -> String
    ) rethrows -> String {
        guard let mark = url.firstIndex(of: "?") else { return url }
        let parts = url[url.index(after: mark)...].split(separator: "&", omittingEmptySubsequences: false)
        let parameters = try parts.map { part in
            let name = part.prefix { $0 != "=" }
            guard name.endIndex < part.endIndex, isSecret(name) else { return String(part) }
            return try "\(name)=\(value(String(name), String(part[part.index(after: name.endIndex)...])))"
        }
        return url[...mark] + parameters.joined(separator: "&")
    }

    /// True if the query has a secret.
    package static func occur(in url: String) -> Bool {
        var found = false
        _ = replacing(in: url) { _, value in
            found = true
            return value
        }
        return found
    }

    /// Returns an edited URL with the secrets of the original where they stand as they are shown: of parameters of one name in their order.
    package static func restored(_ edited: String, from original: String) -> String {
        var known: [String: [String]] = [:]
        _ = replacing(in: original) { name, value in
            known[name, default: []].append(value)
            return value
        }
        var next: [String: Int] = [:]
        return replacing(in: edited) { name, value in
            let place = next[name, default: 0]
            next[name] = place + 1
            guard value == shown, let values = known[name], place < values.count else { return value }
            return values[place]
        }
    }

    /// The URL, or the authority of CONNECT, without the name and the password before its host.
    private static func withoutUserinfo(_ url: Substring) -> Substring {
        guard url.first != "/" else { return url }
        let start = url.firstRange(of: "://")?.upperBound ?? url.startIndex
        let authority = url[start...].prefix { !"/?".contains($0) }
        guard let mark = authority.lastIndex(of: "@") else { return url }
        return url[..<start] + url[url.index(after: mark)...]
    }
}
