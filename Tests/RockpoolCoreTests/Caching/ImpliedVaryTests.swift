// docs/security-model.md#unkeyed-inputs: request fields that an origin omits from Vary although one client could use them to choose a
// response for all others.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct ImpliedVaryTests {
    @Test(
        arguments: [
            ("", "Content-Type: text/plain", []),
            ("Origin: https://evil.example", "Content-Type: text/plain", ["origin"]),
            ("Origin: https://evil.example", "Vary: origin", ["origin"]),
            ("Origin: null", "Vary: *", ["*"]),
            ("Accept: text/evil", "Content-Type: text/plain", ["accept"]),
            ("Accept: text/evil", "", ["accept"]),
            ("Accept: text/evil", "Content-Type: text/plain | Vary: Accept", ["Accept"]),
            ("Accept: text/evil | Origin: https://evil.example", "Vary: Accept-Encoding", ["Accept-Encoding", "origin", "accept"]),
            ("Accept: */*", "Content-Type: text/plain", []),
            ("Accept: */*", "", []),
            ("Accept: text/*;q=0.1", "Content-Type: Text/Plain; charset=utf-8", []),
            ("Accept: text/html, application/json", "Content-Type: application/json", []),
            ("Accept: application/vnd.notes.v2+json", "Content-Type: application/json", []),
            ("Accept: application/json", "Content-Type: text/html", ["accept"]),
            ("", "Content-Encoding: gzip", ["accept-encoding"]), ("", "Content-Encoding: identity", []),
            ("Accept-Encoding: gzip", "Content-Encoding: gzip | Vary: Accept-Encoding", ["Accept-Encoding"]),
            ("Accept: ,,", "Content-Type: text/html", ["accept"]),
            ("Git-Protocol: version=2", "Content-Type: application/x-git-upload-pack-advertisement", ["git-protocol"]),
            ("", "Content-Type: application/x-git-upload-pack-result", ["git-protocol"]),
            ("Git-Protocol: version=2", "Content-Type: text/plain", []),
            ("Authorization: Basic YQ==", "Cache-Control: private", ["cookie"]),
            ("Authorization: basic YQ== | Cookie: a=1", "Cache-Control: max-age=0, private | Vary: Accept", ["Accept", "cookie"]),
            ("Authorization: Basic YQ==", "Cache-Control: private | Vary: Cookie", ["Cookie"]),
            ("Authorization: Basic YQ==", "Cache-Control: max-age=9", []),
            ("Authorization: Basic YQ==", "Cache-Control: private=\"a\"", []),
            ("Authorization: Bearer YQ | Cookie: a=1", "Cache-Control: private", []), ("Cookie: a=1", "Cache-Control: private", []),
        ] as [(String, String, [String])])
    func varyIsMadeWhole(request: String, response: String, expected: [String]) {
        let answer = CachingFixture.response(response)
        let isPrivate = CacheControl.governing(in: answer.fields).directives.isPrivate == .all
        let head = ImpliedVary.completed(answer, for: CachingFixture.request(request), isPrivate: isPrivate)
        #expect(head.fields[values: .vary] == expected)
    }

    /// An origin that selects the type by `Accept`, undeclared, is found by its second type.
    @Test(
        arguments: [
            ("Accept: application/xml", "Content-Type: application/xml", "Content-Type: application/json", ["accept"]),
            ("Accept: application/json", "Content-Type: application/json", "Content-Type: application/xml | Vary: Accept", []),
            ("Accept: application/xml, */*", "Content-Type: application/xml", "Content-Type: application/json", []),
            ("Accept: application/ld+json", "Content-Type: application/ld+json", "Content-Type: application/json", []),
            ("", "Content-Type: application/xml", "Content-Type: application/json", []),
            ("Accept: application/xml", "Content-Type: application/xml", "", []),
        ])
    func aSecondTypeShowsThatAcceptSelects(request: String, response: String, stored: String, expected: [String]) {
        let head = ImpliedVary.completed(
            CachingFixture.response(response), for: CachingFixture.request(request),
            selectsType: !Vary.permitsType(of: CachingFixture.stored(stored), CachingFixture.request(request)),
            isPrivate: false)
        #expect(head.fields[values: .vary] == expected)
    }

    @Test func aValidationDoesNotForgetIt() {
        let request = CachingFixture.request("Origin: https://evil.example")
        let stored = CachingFixture.stored("Vary: Origin | ETag: \"a\"", for: "Origin: https://evil.example")
        let answer = CachingFixture.response("Vary: Accept-Encoding | ETag: \"a\"", status: 304)
        let freshened = Revalidation.freshened(
            stored, by: answer, request: request, sent: Moment(at: stored.requestTime, tick: .first), responseTime: stored.responseTime)
        #expect(!Vary.matches(stored: freshened, request: CachingFixture.request()))
        #expect(Vary.matches(stored: freshened, request: request))
    }
}
