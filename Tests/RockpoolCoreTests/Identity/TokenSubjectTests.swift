// `Authorization` values that claim an identity, and values that claim the same one (RFC 7519 §4.1).
import RockpoolCore
import Testing

struct TokenSubjectTests {
    static func token(_ claims: String, header: String = #"{"alg":"none"}"#, signature: String = "c2ln") -> String {
        [Base64URL.encoded(Array(header.utf8)), Base64URL.encoded(Array(claims.utf8)), signature].joined(separator: ".")
    }

    static let anna = #"{"iss":"i","sub":"anna"}"#

    @Test(arguments: [
        (#"{"iss":"i","sub":"anna"}"#, "i", "anna"), (#"{"sub":"anna","iss":"i","exp":1}"#, "i", "anna"),
        (#"{"sub":"anna"}"#, "", "anna"), (#"{"sub":"ä\u0062","iss":""}"#, "", "äb"),
    ])
    func theClaimsAreRead(claims: String, issuer: String, subject: String) {
        let found = TokenSubject(authorization: "Bearer \(Self.token(claims))")
        #expect(found?.issuer == issuer && found?.subject == subject)
    }

    @Test(arguments: ["Bearer ", "bearer ", "BEARER   "]) func theSchemeIsCaseInsensitive(scheme: String) {
        #expect(TokenSubject(authorization: scheme + Self.token(Self.anna))?.subject == "anna")
    }

    @Test(arguments: [
        "Basic \(token(anna))", token(anna), "Bearer", "Bearer ", "Bearer opaque", "Bearer a.b.c", "Bearer \(token(anna)).x",
        "Bearer \(token(anna).dropLast(5))", "Bearer \(token(#"{"iss":"i"}"#))", "Bearer \(token(#"{"iss":"i","sub":""}"#))",
        "Bearer \(token(#"{"iss":"i","sub":7}"#))", "Bearer \(token(#"{"iss":7,"sub":"anna"}"#))", "Bearer \(token(#"["sub"]"#))",
        "Bearer \(token(#"{"sub":"a","sub":"b"}"#))", "Bearer \(token(anna, header: "x"))",
        "Bearer \(token(#"{"sub":"\#(String(repeating: "a", count: 20_000))"}"#))",
    ])
    func everythingElseClaimsNothing(value: String) { #expect(TokenSubject(authorization: value) == nil) }

    @Test func anUnsignedTokenClaimsToo() {
        #expect(TokenSubject(authorization: "Bearer \(Self.token(Self.anna, signature: ""))")?.subject == "anna")
    }

    /// No two pairs of issuer and subject have the same text, wherever they contain spaces.
    @Test func theTextTellsPairsApart() {
        let pairs = [("a", "b c"), ("a b", "c"), ("", "a b c"), ("a b c", "d"), ("1 a", "b")]
        let texts = pairs.compactMap { TokenSubject(authorization: "Bearer \(Self.token(#"{"iss":"\#($0)","sub":"\#($1)"}"#))")?.text }
        #expect(Set(texts).count == pairs.count)
    }

    private static func text(_ claims: String) -> String? {
        TokenSubject(authorization: "Bearer \(token(#"{"iss":"i","sub":"anna",\#(claims)}"#))")?.text
    }

    /// Each claims something else than the one before it.
    @Test(arguments: [
        [#""exp":1"#, #""scope":"read""#, #""scope":"read write""#, #""scope":["read","write","all"]"#],
        [#""aud":"a""#, #""aud":"b""#, #""aud":["a","b"]"#],
        [#""https://a.example/roles":["a"]"#, #""https://a.example/roles":["a","b"]"#],
        [#""realm_access":{"roles":["user"]}"#, #""realm_access":{"roles":["admin","user"]}"#],
        [#""clientId":"web""#, #""clientId":"cli""#],
        [#""org_id":1"#, #""org_id":2"#], [#""act":{"sub":"bob"}"#, #""act":{"sub":"eve"}"#], [#""isAdmin":true"#, #""isAdmin":false"#],
        [#""app_metadata":{"roles":["user"]}"#, #""app_metadata":{"roles":["admin"]}"#, #""app_metadata":{"plan":"a"}"#],
        [#""amr":["pwd"]"#, #""amr":["pwd","otp"]"#], [#""tenant":"a b""#, #""tenant":"b a""#],
    ])
    func otherRightsAreAnotherIdentity(claims: [String]) {
        #expect(Set(claims.map { Self.text($0) }).count == claims.count)
    }

    @Test(arguments: [
        (#""scope":"read write""#, #""scope":"write  read""#), (#""roles":["a","b"]"#, #""roles":["b","a"]"#),
        (#""scope":"read""#, #""scope":"read","exp":9,"iat":8,"jti":"x","nonce":"n","sid":"s","auth_time":7,"at_hash":"h""#),
        (#""realm_access":{"roles":["a","b"],"x":1}"#, #""realm_access":{"x":1,"roles":["b","a"]}"#),
        (#""contact":"a""#, #""contact":"b""#), (#""app_metadata":{"plan":"a"}"#, #""app_metadata":{"plan":"b"}"#),
        (#""act":{"sub":"bob","exp":1,"jti":"a"}"#, #""act":{"jti":"b","sub":"bob","exp":2}"#),
    ])
    func theSameRightsAreOneIdentity(one: String, other: String) { #expect(Self.text(one) == Self.text(other) && Self.text(one) != nil) }
}
