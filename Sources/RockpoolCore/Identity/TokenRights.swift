// The claims of a token that speak of rights (RFC 7519 §4.1.3, RFC 8693 §4, RFC 9068 §2.2): a token of the same subject with others is another
// identity (docs/security-model.md#proof).

/// The rights that a token claims, as one text: equal for tokens that claim the same, in whatever order.
struct TokenRights: Hashable, Sendable {
    /// Empty without any such claim.
    let text: String

    init(_ claims: JSONObject) { text = Self.lines(of: claims, depth: 0).sorted().joined(separator: "\n") }

    /// Nested objects may have such claims too: `app_metadata: { roles: … }`.
    private static func lines(of claims: JSONObject, depth: Int) -> [String] {
        claims.flatMap { claim -> [String] in
            if speaks(claim.name, of: words) {
                return ["\(claim.name)=\(canonical(claim.value, isScope: speaks(claim.name, of: scopes)))"]
            }
            guard depth < depthLimit, let members = claim.value.object else { return [] }
            return lines(of: members, depth: depth + 1).map { "\(claim.name).\($0)" }
        }
    }

    private static let depthLimit = 4
    /// Claims of one token alone (RFC 7519 §4.1), wherever they are.
    private static let ofOneToken: Set<String> = ["exp", "iat", "nbf", "jti", "auth_time"]
    /// Words of claims whose value is a list, separated by spaces.
    private static let scopes: Set<String> = ["scope", "scopes", "scp", "permissions", "perms"]

    /// Words of claims about who may do what, for whom, and through which client.
    private static let words: Set<String> = [
        "scope", "scopes", "scp", "role", "roles", "group", "groups", "permission", "permissions", "perms", "entitlement", "entitlements",
        "authorities", "privilege", "privileges", "capabilities", "access", "admin", "aud", "audience", "azp", "client", "cid", "appid",
        "tenant", "tid", "org", "organization", "organizations", "account", "workspace", "team", "act", "acr", "amr", "cnf",
    ]

    /// True if a word of the name does, whatever separates the words: `realm_access`, `https://a.example/roles`, `clientId`.
    private static func speaks(_ name: String, of words: Set<String>) -> Bool {
        var (word, wasLower) = ("", false)
        for character in name {
            if !character.isLetter || character.isUppercase && wasLower {
                if words.contains(word) { return true }
                word = ""
            }
            if character.isLetter { word += character.lowercased() }
            wasLower = character.isLowercase
        }
        return words.contains(word)
    }

    /// Elements of arrays, and the parts of a scope (RFC 6749 §3.3), have no order.
    private static func canonical(_ value: JSONValue, isScope: Bool = false) -> String {
        if isScope, let text = value.string { return canonical(.array(text.split(separator: " ").map { .string(String($0)) })) }
        if let elements = value.array { return "[\(elements.map { canonical($0) }.sorted().joined(separator: ","))]" }
        if let members = value.object {
            let texts = members.filter { !ofOneToken.contains($0.name) }.map { "\(canonical(.string($0.name))):\(canonical($0.value))" }
            return "{\(texts.sorted().joined(separator: ","))}"
        }
        return String(decoding: value.serialized(), as: UTF8.self)
    }
}
