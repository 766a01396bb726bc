// Which answers renew the cookies of a session, and which begin another one (docs/caching.md#renewed-cookies).
import HTTPTypes
import Testing

@testable import RockpoolCore

@Suite struct RenewedCookiesTests {
    private static let old = "aaaaaaaaaaaaaaaa"
    private static let new = "bbbbbbbbbbbbbbbb"

    private func following(
        _ setCookies: [String], cookies: String = "lang=de; s=\(old)", method: HTTPRequest.Method = .get, target: String = "/notes",
        status: Int = 200
    ) throws -> String? {
        var request = try RequestHead(url: "http://example.com\(target)")
        request.method = method
        request.fields[.cookie] = cookies
        var answer = ResponseHead(status: status)
        for line in setCookies { answer.fields.append(HTTPField(name: .setCookie, value: line)) }
        return RenewedCookies.following(request, answeredBy: answer, now: CachingFixture.at(0))
    }

    @Test func aRenewedSessionGoesOn() throws {
        let renewed = "s=\(Self.new); Path=/; HttpOnly; Max-Age=3600"
        #expect(try following([renewed]) == "lang=de; s=\(Self.new)")
        #expect(try following([renewed], status: 304) == "lang=de; s=\(Self.new)")
        #expect(try following([renewed, "lang=en", "_ga_X=2"]) == "lang=en; s=\(Self.new)", "others may change beside it")
        #expect(try following([renewed], method: .head) == "lang=de; s=\(Self.new)")
    }

    /// Logins and logouts are answered in these ways; a value that several browsers may have names no session.
    @Test func anythingElseBeginsAnotherOne() throws {
        let renewed = "s=\(Self.new); HttpOnly"
        #expect(try following([renewed], method: .post) == nil)
        #expect(try following([renewed], status: 302) == nil)
        #expect(try following([renewed], target: "/account/logout?x=1") == nil)
        #expect(try following([renewed, "other=1"]) == nil, "a cookie was added")
        #expect(try following([renewed, "lang=; Max-Age=0"]) == nil, "one was removed")
        #expect(try following(["s=gone; Expires=Thu, 01 Jan 1970 00:00:00 GMT; HttpOnly"]) == nil)
        #expect(try following(["s=\(Self.new)"]) == nil, "scripts may read it")
        #expect(try following(["s=\(Self.old); HttpOnly"]) == nil, "the value is the same")
        #expect(try following(["s=2; HttpOnly"], cookies: "s=1") == nil)
        #expect(try following([]) == nil)
        #expect(try following([renewed], cookies: "lang=de") == nil, "there was none")
    }
}
