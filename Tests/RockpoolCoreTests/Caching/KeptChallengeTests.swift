// Challenges, and the protection spaces for which they are kept (docs/caching.md#challenges).
import HTTPTypes
import Testing

@testable import RockpoolCore

@Suite struct KeptChallengeTests {
    private func request(_ method: HTTPRequest.Method, _ target: String, fields: HTTPFields = [:]) -> RequestHead {
        RequestHead(method: method, origin: OriginAddress(scheme: .https, host: "api.example"), target: target, fields: fields)
    }

    private func isOne(_ challenge: String, to method: HTTPRequest.Method, status: Int = 401) -> Bool {
        KeptChallenge.isOne(
            ResponseHead(status: status, fields: [.wwwAuthenticate: challenge]), to: request(method, "/a"), policy: .offlineFirst,
            identity: nil)
    }

    /// A client with a token has no reason to write without it.
    @Test func whatIsAskedForDecides() {
        #expect(isOne("Digest realm=\"a\", nonce=\"b\"", to: .get) && isOne("Digest realm=\"a\"", to: .put))
        #expect(isOne("Bearer realm=\"https://a/token\"", to: .get) && !isOne("Bearer", to: .put))
        #expect(!isOne("Negotiate", to: .get) && !isOne("Basic", to: .get, status: 403))
    }

    @Test func onlyRequestsWithoutCredentialsAreAsked() {
        let challenge = ResponseHead(status: 401, fields: [.wwwAuthenticate: "Basic"])
        let known = request(.get, "/a", fields: [.authorization: "Basic x"])
        #expect(!KeptChallenge.isOne(challenge, to: known, policy: .offlineFirst, identity: nil))
        #expect(!KeptChallenge.isOne(challenge, to: request(.get, "/a"), policy: .offlineFirst, identity: "ann"))
        #expect(!KeptChallenge.isOne(challenge, to: request(.get, "/a"), policy: .standard, identity: nil))
    }

    @Test func spacesAreDirectories() {
        #expect(KeptChallenge.spaces(of: request(.get, "/a/b/c?d=/e/")) == ["/a/b/", "/a/", "/"])
        #expect(KeptChallenge.spaces(of: request(.put, "/a/b/")) == ["/a/b/", "/a/", "/"])
        #expect(KeptChallenge.spaces(of: request(.post, "/a/b?c")) == ["/a/b"])
        #expect(KeptChallenge.spaces(of: request(.get, "/" + String(repeating: "a/", count: 40))).count == 16)
    }

    @Test func onlyTheChallengeIsKept() {
        let answer = ResponseHead(
            status: 401,
            fields: [.wwwAuthenticate: "Basic", .setCookie: "a=b", .contentLength: "4", .date: "Sun, 29 Nov 2026 21:00:00 GMT"])
        let kept = KeptChallenge.head(of: answer)
        #expect(kept.status == 401 && Set(kept.fields.map(\.name)) == [.wwwAuthenticate, .date])
    }
}
