// Unsigned tokens in the form that an API issues.
import RockpoolCore

/// Values of `Authorization`.
package enum Token {
    /// Returns a bearer JWT. `id` distinguishes tokens of one subject; without a subject there is no `sub`.
    package static func bearer(_ subject: String?, issuer: String = "notes", id: Int = 1) -> String {
        var claims: JSONValue = ["iss": .string(issuer), "jti": .string("\(id)")]
        claims["sub"] = subject.map { .string($0) }
        return "Bearer \(Base64URL.encoded(Array(#"{"alg":"none"}"#.utf8))).\(Base64URL.encoded(claims.serialized()))."
    }
}
