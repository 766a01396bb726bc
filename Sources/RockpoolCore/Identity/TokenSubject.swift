// The issuer and subject claimed by a bearer token (RFC 6750 §2.1, RFC 7519 §4.1.1, §4.1.2; docs/caching.md#partitions *Identity*).

/// Issuer and subject as claimed by a JWT, unverified: they may be trusted only after the upstream has accepted the token.
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
