// The requests that match a route's pattern.
import Testing

@testable import RockpoolCore

@Suite struct PathPatternTests {
    @Test(arguments: [
        ("GET /v1/me", "GET", "/v1/me", true), ("GET /v1/me", "HEAD", "/v1/me", true), ("GET /v1/me", "POST", "/v1/me", false),
        ("HEAD /v1/me", "GET", "/v1/me", false), ("get /v1/me", "GET", "/v1/me", false), ("/v1/me", "DELETE", "/v1/me", true),
        ("/v1/me", "GET", "/v1/me/", false), ("/v1/me/", "GET", "/v1/me/", true), ("/v1/me", "GET", "/v1/ME", false),
        ("/v1/*/x", "GET", "/v1/a/x", true), ("/v1/*/x", "GET", "/v1/a/b/x", false), ("/v1/*", "GET", "/v1", false),
        ("/*", "GET", "/", true),
        ("/v1/media/**", "GET", "/v1/media/a/b", true), ("/v1/media/**", "GET", "/v1/media", true),
        ("/v1/media/**", "GET", "/v1/mediator", false),
        ("/**", "GET", "/", true), ("**", "GET", "/a/b/c", true), ("/**/x", "GET", "/a/b/x", true), ("/**/x", "GET", "/x", true),
        ("/**/x", "GET", "/x/y", false), ("/a/**/b/**/c", "GET", "/a/1/b/2/b/3/c", true), ("/a/**/b/**/c", "GET", "/a/1/c", false),
        ("/**/a/*/c", "GET", "/a/a/a/b/c", true), ("/**/*.jpg", "GET", "/a/b.jpg", true), ("/**/*.jpg", "GET", "/a/b.png", false),
        ("/a*a", "GET", "/a", false), ("/a*a", "GET", "/aa", true), ("/a%2Fb", "GET", "/a%2Fb", true), ("/a%2Fb", "GET", "/a/b", false),
        ("/a%2Fb", "GET", "/a%2fb", true), ("", "GET", "/", true), ("POST  /a", "POST", "/a", true),
    ])
    func pattern(text: String, method: String, path: String, expected: Bool) {
        #expect(PathPattern(text).matches(method: method, path: path) == expected)
    }

    @Test func manyWildcardsStayQuick() {
        let pattern = PathPattern(String(repeating: "/**/a", count: 30) + "/b")
        #expect(!pattern.matches(method: "GET", path: String(repeating: "/a", count: 500)))
        #expect(pattern.matches(method: "GET", path: String(repeating: "/a", count: 500) + "/b"))
    }
}
