// RFC 9110 §13 and RFC 9111 §4.3.2: a client's conditions evaluated on stored responses; entity tags.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct PreconditionsTests {
    @Test(arguments: [
        ("If-None-Match: \"a\"", "ETag: \"a\"", true), ("If-None-Match: \"b\"", "ETag: \"a\"", false),
        ("If-None-Match: \"b\", \"a\"", "ETag: \"a\"", true), ("If-None-Match: \"b\" | If-None-Match: W/\"a\"", "ETag: \"a\"", true),
        ("If-None-Match: \"a\"", "ETag: W/\"a\"", true), ("If-None-Match: W/\"a\"", "ETag: W/\"a\"", true),
        ("If-None-Match: *", "ETag: \"a\"", true), ("If-None-Match: *", "", true), ("If-None-Match: \"*\"", "ETag: \"a\"", false),
        ("If-None-Match: \"a,b\"", "ETag: \"a,b\"", true), ("If-None-Match: \"a\"", "ETag: \"a,b\"", false),
        ("If-None-Match: \"a\\\", \"b\"", "ETag: \"a\\\"", true), ("If-None-Match: \"a\"", "", false),
        ("If-None-Match: ", "ETag: \"a\"", false),
        ("If-None-Match: a", "ETag: a", true), ("If-None-Match: a", "ETag: \"a\"", false), ("If-None-Match: \"A\"", "ETag: \"a\"", false),
        // The date is evaluated only when there is no tag.
        ("If-None-Match: \"b\" | If-Modified-Since: @0", "ETag: \"a\" | Last-Modified: @0", false),
        ("If-None-Match: \"a\" | If-Modified-Since: @-99", "ETag: \"a\" | Last-Modified: @0", true),
        ("If-Modified-Since: @0", "Last-Modified: @0", true), ("If-Modified-Since: @9", "Last-Modified: @0", true),
        ("If-Modified-Since: @-1", "Last-Modified: @0", false), ("If-Modified-Since: bad", "Last-Modified: @0", false),
        ("If-Modified-Since: @0 | If-Modified-Since: @0", "Last-Modified: @0", false),
        ("If-Modified-Since: @0", "Date: @0", true), ("If-Modified-Since: @-1", "Date: @0", false), ("If-Modified-Since: @0", "", false),
        ("", "ETag: \"a\" | Last-Modified: @0", false), ("Range: bytes=0-1 | If-Range: \"a\"", "ETag: \"a\"", false),
    ])
    func evaluates(_ request: String, _ stored: String, isNotModified: Bool) {
        let outcome = Preconditions.evaluate(request: CachingFixture.request(request), stored: CachingFixture.response(stored))
        #expect((outcome != .full) == isNotModified)
    }

    @Test(arguments: [(200, true), (203, true), (301, false), (404, false), (500, false)])
    func onlySuccessIsConditional(_ status: Int, isNotModified: Bool) {
        let stored = CachingFixture.response("ETag: \"a\"", status: status)
        let outcome = Preconditions.evaluate(request: CachingFixture.request("If-None-Match: \"a\""), stored: stored)
        #expect((outcome != .full) == isNotModified)
    }

    @Test func notModifiedKeepsWhatGuidesCaches() {
        let stored = CachingFixture.response(
            "ETag: \"a\" | Cache-Control: max-age=1 | Content-Location: /x | Date: @0 | Expires: @9 | Vary: A | Content-Type: a/b"
                + " | Content-Length: 5 | Content-Encoding: gzip | Content-Language: en")
        let outcome = Preconditions.evaluate(request: CachingFixture.request("If-None-Match: *", method: .head), stored: stored)
        let expected = "ETag: \"a\" | Cache-Control: max-age=1 | Content-Location: /x | Date: @0 | Expires: @9 | Vary: A"
        #expect(outcome == .notModified(CachingFixture.response(expected, status: 304)))
        #expect(Preconditions.evaluate(request: CachingFixture.request("If-None-Match: *", method: .post), stored: stored) == .full)
    }

    @Test func comparisons() throws {
        let strong = try #require(EntityTag("\"a\""))
        let weak = try #require(EntityTag(" W/\"a\" "))
        #expect(weak.isWeak && weak.fieldValue == "W/\"a\"" && strong.fieldValue == "\"a\"")
        #expect(strong.matchesWeakly(weak) && !strong.matchesStrongly(weak))
        #expect(!weak.matchesStrongly(weak) && strong.matchesStrongly(strong))
        let (composed, decomposed) = (try #require(EntityTag("\"\u{E9}\"")), try #require(EntityTag("\"e\u{301}\"")))
        #expect(!composed.matchesWeakly(decomposed) && !composed.matchesStrongly(decomposed) && composed.matchesStrongly(composed))
        #expect(EntityTag("") == nil && EntityTag("W/") == nil)
        #expect(EntityTag.list(in: "\"a\",, W/\"b\" ,\"c").map(\.fieldValue) == ["\"a\"", "W/\"b\"", "\"c"])
    }
}
