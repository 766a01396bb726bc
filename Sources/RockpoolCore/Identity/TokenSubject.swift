// Whom a bearer token says it is of (RFC 6750 §2.1, RFC 7519 §4.1.1, §4.1.2; design §5 *Identity*).

/// Issuer and subject as a JWT claims them, nothing verified: only what the upstream has accepted may be believed.
package struct TokenSubject: Hashable, Sendable {
    /// `iss`; empty where the token names none.
    package let issuer: String
    /// `sub`, never empty.
    package let subject: String

    /// Longer tokens are left as they are: parsing is not worth more.
    private static let sizeLimit = 16 << 10
    private static let depthLimit = 16

    /// What the value of `Authorization` claims. Nil unless it is a bearer token in the form of a signed JWT (three parts, the
    /// signature possibly empty) whose `sub`, and `iss` where there is one, are texts.
    package init?(authorization value: String) {
        guard let token = Self.bearer(value), token.utf8.count <= Self.sizeLimit else { return nil }
        let parts = token.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, Self.object(parts[0]) != nil, let claims = Self.object(parts[1]), let subject = claims["sub"]?.string,
            !subject.isEmpty
        else { return nil }
        switch claims["iss"] {
        case nil: issuer = ""
        case .string(let name)?: issuer = name
        default: return nil
        }
        self.subject = subject
    }

    /// Both in one text that no other pair has.
    package var text: String { "\(issuer.utf8.count) \(issuer) \(subject)" }

    private static func bearer(_ value: String) -> Substring? {
        guard value.utf8.count > 7, value.prefix(7).lowercased() == "bearer " else { return nil }
        return value.dropFirst(7).drop { $0 == " " }
    }

    private static func object(_ part: Substring.UTF8View) -> JSONObject? {
        Base64URL.decoded(part).flatMap { try? JSONValue.parse($0, depthLimit: depthLimit) }?.object
    }
}
