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

    /// The fields as they are shown: without the secret ones, and with `REDACTED` for the secrets of URLs in the others.
    /// - Parameter withSecrets: true for the URLs as they are.
    package static func shown(_ fields: HTTPFields, withSecrets: Bool = false) -> HTTPFields {
        let fields = removed(from: fields)
        return withSecrets ? fields : replacing(in: fields) { _ in Array(SecretParameters.shown.utf8) }
    }

    /// Returns the fields with other values of their secrets: of a secret field the whole value, of any other one what is secret in the
    /// URLs that it holds, as `Location`, `Link`, `Refresh`, `Destination` and `Rockpool-Callback` do.
    package static func replacing(in fields: HTTPFields, _ value: ([UInt8]) throws -> [UInt8]) rethrows -> HTTPFields {
        HTTPFields(
            try fields.map { field in
                let bytes = field.valueBytes
                let changed =
                    try contains(field.name) ? value(bytes) : SecretParameters.replacing(in: bytes) { _, secret in try value(secret) }
                return changed == bytes ? field : HTTPField(name: field.name, lenientValue: changed)
            })
    }

    /// True if one of the fields is a secret or holds one.
    package static func occur(in fields: HTTPFields) -> Bool {
        fields.contains { contains($0.name) || SecretParameters.occur(in: $0.valueBytes) { _ in true } }
    }
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
    static let shown = "REDACTED"

    /// Returns a URL, a target or a text that holds URLs, with other values of their secrets.
    /// - Parameter isSecret: decides by the name which parameters these are.
    package static func replacing(
        in url: String, where isSecret: (String) -> Bool = { contains($0) }, _ value: (_ name: String, _ value: String) throws -> String
    ) rethrows -> String {
        String(
            decoding: try replacing(in: Array(url.utf8), where: isSecret) { name, secret in
                Array(try value(name, String(decoding: secret, as: UTF8.self)).utf8)
            }, as: UTF8.self)
    }

    /// The name under which the part of a URL before its host is a secret (RFC 3986 §3.2.1).
    private static let userinfo = "userinfo"

    /// The same for bytes, which need not be UTF-8. Secrets are what precedes `@` in an authority, and values of parameters of a query or a
    /// fragment, also of a URL within another: such a value ends before `&`, and where the URL ends in a text.
    package static func replacing(
        in text: [UInt8], where isSecret: (String) -> Bool = { contains($0) }, _ value: (_ name: String, _ value: [UInt8]) throws -> [UInt8]
    ) rethrows -> [UInt8] {
        guard text.contains(where: { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") || $0 == UInt8(ascii: "@") }) else { return text }
        var (result, rest, isAmongParameters) = ([UInt8](), text[...], false)
        while let byte = rest.popFirst() {
            result.append(byte)
            switch byte {
            case UInt8(ascii: ":") where rest.starts(with: "//".utf8):
                let authority = rest.dropFirst(2).prefix { !"/?#".utf8.contains($0) && !endsURL($0) }
                guard let end = authority.lastIndex(of: UInt8(ascii: "@")) else { continue }
                result += Array("//".utf8) + (try value(userinfo, Array(authority[..<end])))
                rest = rest[end...]
                continue
            case UInt8(ascii: "?"), UInt8(ascii: "#"): isAmongParameters = true
            case UInt8(ascii: "&") where isAmongParameters: break
            default:
                if endsURL(byte) { isAmongParameters = false }
                continue
            }
            let name = rest.prefix { !"=&?#".utf8.contains($0) && !endsURL($0) }
            guard rest[name.endIndex...].first == UInt8(ascii: "="), isSecret(String(decoding: name, as: UTF8.self)) else { continue }
            let secret = rest[(name.endIndex + 1)...].prefix { $0 != UInt8(ascii: "&") && !endsURL($0) }
            result += name + [UInt8(ascii: "=")] + (try value(String(decoding: name, as: UTF8.self), Array(secret)))
            rest = rest[secret.endIndex...]
        }
        return result
    }

    /// True of bytes that no URL has, and that stand around one in a text.
    private static func endsURL(_ byte: UInt8) -> Bool { byte <= 0x20 || "<>\"".utf8.contains(byte) }

    /// True if the query, or a URL within the text, has a secret.
    package static func occur(in url: String) -> Bool { occur(in: Array(url.utf8)) { _ in true } }

    /// True if a secret stands in a text as it is shown: what was sent cannot be known from it.
    package static func areHidden(in text: [UInt8]) -> Bool { occur(in: text) { $0 == Array(shown.utf8) } }

    static func occur(in text: [UInt8], where isMeant: ([UInt8]) -> Bool) -> Bool {
        var found = false
        _ = replacing(in: text) { _, value in
            found = found || isMeant(value)
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
