// Redaction of credentials in queries, where some clients send them although they should not (RFC 6750 §5.3), for logs and exports.
import Synchronization

/// Finds parameters of a query that carry secrets.
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
