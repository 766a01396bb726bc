// The claims of a bearer token, unverified: issuer and subject, and rights (RFC 7519; docs/security-model.md#proof).

/// Issuer and subject as claimed by a JWT, unverified (RFC 6750 §2.1, RFC 7519 §4.1.1, §4.1.2; docs/caching.md#partitions *Identity*): they
/// may be trusted only after the upstream has accepted the token.
package struct TokenSubject: Hashable, Sendable {
    /// `iss`; empty if the token has none.
    package let issuer: String
    /// `sub`, never empty.
    package let subject: String

    private let rights: TokenRights

    /// Longer tokens are not parsed, to limit the cost.
    private static let sizeLimit = Int.kib(16)
    private static let depthLimit = 16

    /// The claims in a value of `Authorization`. Nil unless it is a bearer token in the form of a signed JWT (three parts, the signature
    /// possibly empty) with a string `sub` and, if present, a string `iss`.
    package init?(authorization value: String) {
        guard let token = Self.bearer(in: value), token.utf8.count <= Self.sizeLimit else { return nil }
        let parts = token.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, Self.object(in: parts[0]) != nil, let claims = Self.object(in: parts[1]),
            let subject = claims["sub"]?.string,
            !subject.isEmpty
        else { return nil }
        switch claims["iss"] {
        case nil: issuer = ""
        case .string(let name)?: issuer = name
        default: return nil
        }
        self.subject = subject
        rights = TokenRights(claims)
    }

    /// Both claims, and those that speak of rights, in one text that is unique to them: a token with less scope does not read what one with more
    /// has read.
    package var text: String {
        let pair = "\(issuer.utf8.count) \(issuer) \(subject)"
        return rights.text.isEmpty ? pair : "\(pair.utf8.count) \(pair)\n\(rights.text)"
    }

    private static func bearer(in value: String) -> Substring? {
        guard value.utf8.count > 7, value.prefix(7).lowercased() == "bearer " else { return nil }
        return value.dropFirst(7).drop { $0 == " " }
    }

    private static func object(in part: Substring.UTF8View) -> JSONObject? {
        Base64URL.decoded(part).flatMap { try? JSONValue.parse($0, depthLimit: depthLimit) }?.object
    }
}

/// The rights that a token claims, as one text (RFC 7519 §4.1.3, RFC 8693 §4, RFC 9068 §2.2): equal for tokens that claim the same, in
/// whatever order.
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
