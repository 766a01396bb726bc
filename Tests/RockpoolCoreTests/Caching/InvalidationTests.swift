// RFC 9111 §4.4 and RFC 3986 §5.4: the URLs that a write invalidates, never of another origin.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct InvalidationTests {
    static let url = "https://api.example.com"

    @Test(arguments: [
        (HTTPRequest.Method.post, 200, true), (.put, 204, true), (.patch, 200, true), (.delete, 204, true), (.post, 201, true),
        (.post, 303, true),
        (.post, 399, true), (.post, 400, false), (.put, 412, false), (.delete, 500, false), (.get, 200, false), (.head, 200, false),
        (.options, 200, false), (.trace, 200, false), (.post, 100, false),
    ])
    func methodsAndStatuses(_ method: HTTPRequest.Method, status: Int, invalidates: Bool) {
        let targets = Invalidation.targets(
            request: CachingFixture.request(method: method),
            response: CachingFixture.response(status: status))
        #expect(targets.first == (invalidates ? Self.url + "/v1/notes" : nil))
        // A DELETE changes the listings of the collections above, too (RFC 4918 §9.6).
        #expect(method == .delete || targets.count == (invalidates ? 1 : 0))
    }

    @Test func unknownMethodsAreUnsafeAndRegisteredSafeOnesAreNot() throws {
        for (name, isSafe) in [
            ("QUERY", true), ("PROPFIND", true), ("REPORT", true), ("PRI", true), ("MKCOL", false), ("FOO", false), ("get", false),
            ("M-SEARCH", false),
        ] {
            #expect(try #require(HTTPRequest.Method(name)).isSafe == isSafe)
        }
    }

    @Test func locationsOfTheSameOriginOnly() {
        let targets = { (fields: String) in
            Invalidation.targets(request: CachingFixture.request(method: .post), response: CachingFixture.response(fields, status: 201))
        }
        #expect(
            targets("Location: /v1/notes/7 | Content-Location: /v1/index")
                == [
                    "/v1/notes", "/v1/notes/7",
                    "/v1/index",
                ].map { Self.url + $0 })
        #expect(targets("Location: /v1/notes") == [Self.url + "/v1/notes"])
        #expect(targets("Location: https://evil.example/x | Content-Location: //evil.example/y") == [Self.url + "/v1/notes"])
    }

    /// What S3 makes of uploaded parts is read without the query.
    @Test func anUploadChangesItsObject() {
        let targets = { (method: HTTPRequest.Method, query: String, status: Int) in
            Invalidation.targets(
                request: CachingFixture.request(method: method, target: "/b/k?" + query), response: CachingFixture.response(status: status))
        }
        #expect(targets(.post, "uploadId=7", 200) == [Self.url + "/b/k?uploadId=7", Self.url + "/b/k"])
        #expect(targets(.post, "x-id=C&uploadId=7", 200).last == Self.url + "/b/k" && targets(.post, "uploadId=7", 404).isEmpty)
        #expect(targets(.put, "uploadId=7", 200).count == 1 && targets(.post, "uploads", 200).count == 1)
    }

    /// References resolved against https://api.example.com/b/c/d?q.
    @Test(arguments: [
        ("g", "/b/c/g"), ("./g", "/b/c/g"), ("g/", "/b/c/g/"), ("/g", "/g"), ("?y", "/b/c/d?y"), ("g?y", "/b/c/g?y"), ("#s", "/b/c/d?q"),
        ("g#s", "/b/c/g"), ("", "/b/c/d?q"), (".", "/b/c/"), ("./", "/b/c/"), ("..", "/b/"), ("../g", "/b/g"), ("../..", "/"),
        ("../../g", "/g"),
        ("../../../g", "/g"), ("/./g", "/g"), ("/../g", "/g"), ("g.", "/b/c/g."), ("..g", "/b/c/..g"), ("./g/.", "/b/c/g/"),
        ("g/../h", "/b/c/h"),
        ("g?y/../x", "/b/c/g?y/../x"), ("//api.example.com/g", "/g"), ("//API.example.com:443/g", "/g"), ("https://api.example.com", "/"),
        ("https://api.example.com?x", "/?x"), ("HTTPS://api.example.com:/g", "/g"), ("/a:b", "/a:b"), ("/%7e//x", "/%7e//x"),
    ])
    func resolves(_ reference: String, expected: String) {
        #expect(URIReference.resolve(reference, origin: CachingFixture.origin, target: "/b/c/d?q") == Self.url + expected)
    }

    @Test(arguments: [
        "http://api.example.com/g", "https://api.example.com:8443/g", "https://api.example.com.evil.example/g", "//evil.example/g",
        "https://user@api.example.com/g", "https://api.example.com:x/g", "https://api.example.com:99999999999999999999/g", "mailto:a@b",
        "https:/g", "https:g", "https://", "urn:x:y", "https://api.example.com:4 43/g",
    ])
    func leavesOtherOriginsAlone(_ reference: String) {
        #expect(URIReference.resolve(reference, origin: CachingFixture.origin, target: "/b/c/d?q") == nil)
    }

    @Test func addressesInBrackets() {
        let origin = OriginAddress(scheme: .http, host: "::1", port: 8080)
        #expect(URIReference.resolve("http://[::1]:8080/x", origin: origin, target: "/") == "http://[::1]:8080/x")
        #expect(URIReference.resolve("http://[::1]/x", origin: origin, target: "/") == nil)
    }
}
