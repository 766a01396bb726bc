// Queries carry credentials too, though they should not (RFC 6750 §5.3): their values are kept out of logs.

/// Finds parameters of a query whose values are secrets.
package enum SecretParameters {
    /// A parameter whose name holds one of these is taken for a secret.
    private static let words = [
        "token", "secret", "password", "passwd", "passphrase", "apikey", "api_key", "api-key", "accesskey", "access_key", "auth",
        "signature",
        "credential", "session", "jwt", "assertion",
    ]
    /// Names that are secrets only as a whole: within others they mean nothing.
    private static let names: Set<String> = ["key", "sig", "code", "pwd", "pass", "sid", "otp", "pin"]

    /// Whether the value of a parameter of that name, as it is written in the query, is a secret.
    package static func contains(_ name: some StringProtocol) -> Bool {
        let name = name.lowercased()
        return names.contains(name) || words.contains { name.contains($0) } || name.contains("%")
    }

    /// The URL with `REDACTED` in the place of secret values; without its fragment.
    package static func redacted(url: String) -> String {
        let whole = url.prefix { $0 != "#" }
        guard let mark = whole.firstIndex(of: "?") else { return String(whole) }
        let parameters = whole[whole.index(after: mark)...].split(separator: "&", omittingEmptySubsequences: false).map { part in
            let name = part.prefix { $0 != "=" }
            return name.endIndex < part.endIndex && contains(name) ? "\(name)=REDACTED" : String(part)
        }
        return whole[...mark] + parameters.joined(separator: "&")
    }
}
