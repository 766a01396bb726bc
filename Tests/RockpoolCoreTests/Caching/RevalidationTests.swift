// RFC 9111 §3.2, §4.3.1, §4.3.4, §4.3.5: conditional requests, the stored response that an answer selects, and its update.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct RevalidationTests {
    @Test(arguments: [
        ("ETag: \"a\"", "ETag: \"a\"", true), ("ETag: \"a\"", "ETag: \"b\"", false), ("ETag: W/\"a\"", "ETag: W/\"a\"", true),
        ("ETag: \"a\"", "ETag: W/\"a\"", true), ("ETag: W/\"a\"", "ETag: \"a\"", false), ("", "ETag: \"a\"", false),
        ("ETag: \"a\" | Last-Modified: @-9", "ETag: \"b\" | Last-Modified: @-9", false),
        ("Last-Modified: @-9", "Last-Modified: @-9", true), ("Last-Modified: @-9", "Last-Modified: @-8", false),
        ("Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT", "Last-Modified: Sun Nov  6 08:49:37 1994", true),
        ("ETag: \"a\"", "Last-Modified: @-9", false), ("ETag: \"a\" | Last-Modified: @-9", "Last-Modified: @-9", true),
        ("ETag: \"a\"", "", true), ("Last-Modified: @-9", "Date: @5", true), ("ETag: abc", "ETag: abc", true),
    ])
    func selects(_ stored: String, _ notModified: String, isSelected: Bool) {
        let response = CachingFixture.response(notModified, status: 304)
        #expect(Revalidation.selects(CachingFixture.stored(stored), notModified: response) == isSelected)
    }

    @Test(arguments: [
        (["ETag: \"a\""], 0, "If-None-Match: \"a\""), (["Last-Modified: @-9"], 0, "If-Modified-Since: @-9"),
        (["ETag: W/\"a\" | Last-Modified: @-9"], 0, "If-None-Match: W/\"a\" | If-Modified-Since: @-9"), ([""], 0, ""),
        (["ETag: \"a\"", "ETag: \"b\"", "ETag: \"a\"", ""], 1, "If-None-Match: \"b\", \"a\""),
        (["Last-Modified: @-9", "ETag: \"b\""], 0, "If-Modified-Since: @-9"), (["", "ETag: \"b\""], 0, "If-None-Match: \"b\""),
        (["Last-Modified: bad"], 0, ""), (["ETag: \"a\" | ETag: \"b\""], 0, ""), ([], 0, ""), (["ETag: \"a\""], 7, ""),
    ])
    func conditionals(_ stored: [String], selected: Int, expected: String) {
        let candidates = stored.map { CachingFixture.stored($0) }
        #expect(Revalidation.conditionals(candidates: candidates, selected: selected) == CachingFixture.fields(expected))
    }

    /// `Date` is taken from the 304, or is its receipt at second 50; `Age` is taken from the 304, or removed.
    @Test(arguments: [
        ("A: 1", "A: 2 | B: 3", "Date: @50 | A: 2 | B: 3"), ("A: 1 | A: 2", "A: 3 | A: 4", "Date: @50 | A: 3 | A: 4"),
        ("A: 1", "", "Date: @50 | A: 1"), ("Age: 9 | Date: @-9", "", "Date: @50"),
        ("Age: 9 | Date: @-9", "Age: 2 | Date: @48", "Age: 2 | Date: @48"),
        ("Cache-Control: max-age=1", "Cache-Control: max-age=9", "Date: @50 | Cache-Control: max-age=9"),
        ("Content-Length: 5", "Content-Length: 0", "Date: @50 | Content-Length: 5"),
        (
            "Content-Encoding: gzip", "Content-Encoding: br | Content-Range: bytes 0-1/2 | Transfer-Encoding: chunked",
            "Date: @50 | Content-Encoding: gzip"
        ),
        ("Content-Type: a/b", "Content-Type: c/d", "Content-Type: a/b | Date: @50"),
        ("ETag: \"a\"", "ETag: W/\"a\"", "Date: @50 | ETag: \"a\""), ("ETag: \"a\"", "ETag: \"b\"", "Date: @50 | ETag: \"a\""),
        ("Last-Modified: @-9", "ETag: \"a\"", "Date: @50 | Last-Modified: @-9 | ETag: \"a\""),
        ("A: 1", "Set-Cookie: x=y | Connection: A, close | A: 2 | Keep-Alive: 5", "Date: @50 | A: 1"),
        ("A: 1", "A: 2 | Cache-Control: no-cache=\"A\"", "Date: @50 | Cache-Control: no-cache=\"A\""),
        ("Expires: @9", "Expires: @99", "Date: @50 | Expires: @99"),
        ("Cache-Control: private=\"A\"", "A: 2 | B: 3", "Cache-Control: private=\"A\" | Date: @50 | B: 3"),
        (
            "Cache-Control: no-cache=\"A\"", "A: 2 | Cache-Control: max-age=9",
            "Date: @50 | A: 2 | Cache-Control: max-age=9"
        ),
        // What was found out about the stored bytes stays; what the origin said is replaced.
        ("Vary: Accept | Vary: cookie", "Vary: Accept-Encoding", "Date: @50 | Vary: Accept-Encoding | Vary: cookie"),
        ("Vary: x-flavour", "Vary: User-Agent", "Date: @50 | Vary: User-Agent | Vary: x-flavour"),
        // Everything is repeated, in part or but for what belongs to the exchange.
        ("ETag: \"a\" | Vary: A | Date: @-9", "Vary: A | ETag: \"a\" | Date: @48", "ETag: \"a\" | Vary: A | Date: @48"),
        ("Cache-Control: max-age=9 | Expires: @9", "Expires: @9", "Cache-Control: max-age=9 | Expires: @9 | Date: @50"),
        ("ETag: \"a\" | Age: 9", "ETag: \"a\" | Age: 9", "ETag: \"a\" | Date: @50 | Age: 9"),
        ("ETag: \"a\" | Age: 9", "", "ETag: \"a\" | Date: @50"),
        ("A: 1 | Cache-Control: no-cache=\"A\"", "Cache-Control: no-cache=\"A\"", "Date: @50 | Cache-Control: no-cache=\"A\""),
    ])
    func freshens(_ fields: String, _ notModified: String, expected: String) {
        var stored = CachingFixture.stored(fields, bodyLength: 5)
        stored.isInvalidated = true
        let freshened = Revalidation.freshened(
            stored, by: CachingFixture.response(notModified, status: 304),
            sent: Moment(at: CachingFixture.at(49), tick: .first), responseTime: CachingFixture.at(50))
        #expect(freshened.head.status == 200)
        #expect(freshened.head.fields == CachingFixture.fields(expected))
        // Nothing else of the earlier one is left, whatever was parsed anew.
        let new = StoredResponse(
            head: freshened.head, requestFields: freshened.requestFields, requestTime: CachingFixture.at(49),
            responseTime: CachingFixture.at(50), bodyLength: 5)
        #expect(freshened == new)
    }

    /// A 304 that repeats everything still shows that its request may have been answered for its own sake.
    @Test func aRepeatedResponseVariesByWhatItsRequestSays() {
        let (stored, request) = (CachingFixture.stored("ETag: \"a\""), CachingFixture.request("Origin: https://a.example"))
        let freshened = Revalidation.freshened(
            stored, by: CachingFixture.response("ETag: \"a\"", status: 304), request: request,
            sent: Moment(at: CachingFixture.start, tick: .first), responseTime: CachingFixture.start)
        #expect(Vary.matches(stored: freshened, request: request) && !Vary.matches(stored: freshened, request: CachingFixture.request()))
    }

    /// §4.3.4: a 304 selects the response used for the conditions, else another one with the same tag, else none.
    @Test(
        arguments: [
            ("ETag: \"a\"", 0), ("ETag: \"b\"", 1), ("ETag: \"c\"", nil), ("", 0), ("ETag: W/\"b\"", 1), ("Last-Modified: @-9", nil),
        ] as [(String, Int?)])
    func whichOneA304IsAbout(_ fields: String, expected: Int?) {
        let candidates = ["ETag: \"a\"", "ETag: \"b\""].map { CachingFixture.stored($0) }
        let notModified = CachingFixture.response(fields, status: 304)
        #expect(Revalidation.selected(among: candidates, asked: 0, notModified: notModified) == expected)
        #expect(Revalidation.selected(among: candidates, asked: 7, notModified: notModified) == nil)
    }

    @Test func aFreshenedResponseIsFreshAgain() {
        let stored = CachingFixture.stored("Cache-Control: max-age=60 | Date: @-100 | Age: 500")
        let freshened = Revalidation.freshened(
            stored, by: CachingFixture.response(status: 304), sent: Moment(at: CachingFixture.at(70), tick: .first),
            responseTime: CachingFixture.at(70))
        #expect(!Freshness.of(stored, now: CachingFixture.at(75)).isFresh)
        #expect(Freshness.of(freshened, now: CachingFixture.at(75)).remaining == .seconds(55))
    }

    @Test func aNewVaryTakesTheValidatingRequestsFields() {
        let stored = CachingFixture.stored("Vary: A", for: "A: 1")
        let freshened = Revalidation.freshened(
            stored, by: CachingFixture.response("Vary: A, B", status: 304), request: CachingFixture.request("A: 1 | B: 2"),
            sent: Moment(at: CachingFixture.start, tick: .first), responseTime: CachingFixture.start)
        #expect(Vary.matches(stored: freshened, request: CachingFixture.request("A: 1 | B: 2")))
        #expect(!Vary.matches(stored: freshened, request: CachingFixture.request("A: 1")))
    }

    @Test(arguments: [
        ("Cache-Control: max-age=9", true, true), ("Cache-Control: private", false, true), ("Cache-Control: no-store", false, false),
        ("Cache-Control: private=\"x\"", true, true),
    ])
    func mayStay(_ fields: String, shared: Bool, own: Bool) {
        #expect(Revalidation.mayStay(CachingFixture.stored(fields), in: .shared) == shared)
        #expect(Revalidation.mayStay(CachingFixture.stored(fields), in: .identity("ann")) == own)
    }

    @Test(arguments: [
        ("", 200, "freshened"), ("ETag: \"a\"", 200, "freshened"), ("ETag: \"b\"", 200, "outdated"),
        ("Last-Modified: @-9", 200, "outdated"), ("ETag: \"b\"", 500, "unrelated"),
        // A status about the resource itself makes the stored response outdated; one about the server or this request does not.
        ("", 404, "outdated"), ("", 410, "outdated"), ("", 301, "outdated"), ("", 308, "outdated"), ("", 204, "outdated"),
        ("", 304, "unrelated"), ("", 302, "unrelated"), ("", 401, "unrelated"), ("", 403, "unrelated"), ("", 405, "unrelated"),
        ("", 429, "unrelated"), ("", 501, "unrelated"), ("", 503, "unrelated"),
    ])
    func headOfTheSame(_ fields: String, status: Int, expected: String) {
        let outcome = Revalidation.head(
            CachingFixture.stored("ETag: \"a\"", bodyLength: 5), by: CachingFixture.response(fields, status: status), length: nil,
            sent: Moment(at: CachingFixture.start, tick: .first), responseTime: CachingFixture.at(5))
        switch outcome {
        case .freshened(let stored): #expect(expected == "freshened" && stored.responseTime == CachingFixture.at(5))
        case .outdated: #expect(expected == "outdated")
        case .unrelated: #expect(expected == "unrelated")
        }
    }

    @Test(arguments: [(nil, false), (5, false), (6, true), (0, true)]) func headOfAnotherLength(_ length: Int64?, isOutdated: Bool) {
        let outcome = Revalidation.head(
            CachingFixture.stored("", bodyLength: 5), by: CachingFixture.response(), length: length,
            sent: Moment(at: CachingFixture.start, tick: .first),
            responseTime: CachingFixture.at(5))
        #expect((outcome == .outdated) == isOutdated)
    }
}
