// Redaction of credentials in queries, where some clients send them although they should not (RFC 6750 §5.3), for logs and exports.

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

    /// True if the value of a parameter of that name, as written in the query, is a secret; a percent-encoded name always counts as one.
    package static func contains(_ name: some StringProtocol) -> Bool {
        let name = name.lowercased()
        return names.contains(name) || words.contains { name.contains($0) } || name.contains("%")
    }

    /// Returns the URL with secret values replaced by `REDACTED`, without its fragment.
    package static func redacted(url: String) -> String {
        let whole = withoutUserinfo(url.prefix { $0 != "#" })
        guard let mark = whole.firstIndex(of: "?") else { return String(whole) }
        let parameters = whole[whole.index(after: mark)...].split(separator: "&", omittingEmptySubsequences: false).map { part in
            let name = part.prefix { $0 != "=" }
            return name.endIndex < part.endIndex && contains(name) ? "\(name)=REDACTED" : String(part)
        }
        return whole[...mark] + parameters.joined(separator: "&")
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
