// RFC 9111 §3 and §4 together: a response is stored if permitted, and a later request selects it. Received at second 0.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct StoredAndMetAgainTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var response: String
        var expected: String
        var status = 200
        /// The request of the stored response, and the later request; nil repeats the first.
        var first = ""
        var then: String?
        var now: Int64 = 1
        var method = HTTPRequest.Method.get
        var testDescription: String { "\(method) \(first) → \(status) \(response), then \(then ?? first) @\(now)" }
    }

    /// Returns `fresh`, `validate`, or the reason for neither.
    private func outcome(_ given: Case) -> String {
        let first = CachingFixture.request(given.first, method: given.method)
        let response = CachingFixture.response(given.response, status: given.status)
        let plan: StoragePlan
        switch Storability.decide(request: first, response: response, context: StorageContext()) {
        case .refuse(let reason): return "not stored: \(reason.rawValue)"
        case .store(let decided): plan = decided
        }
        let then = CachingFixture.request(given.then ?? given.first)
        guard plan.key(for: first) == CacheKey(then, identity: plan.identity) else { return "another key" }
        let stored = StoredResponse(
            head: plan.head(of: response, receivedAt: CachingFixture.start),
            requestFields: Vary.selectingFields(response: response, request: first) ?? [:], requestTime: CachingFixture.start,
            responseTime: CachingFixture.start, assignedTTL: plan.assignedTTL(named: nil))
        switch Reuse.decide(candidates: [stored], request: then, context: ReuseContext(), now: CachingFixture.at(given.now)) {
        case .fresh: return "fresh"
        case .stale(_, _, let reason): return "stale: \(reason.detail)"
        case .validate(_, _, let conditionals, _): return conditionals.isEmpty ? "anew" : "validate"
        case .complete: return "complete"
        case .none(let reason), .gatewayTimeout(let reason): return reason.rawValue
        }
    }

    static let minute = "Cache-Control: max-age=60"

    /// RFC 9111 §3: a final status with explicit freshness is stored, known or unknown, unless it depends on a credential or a condition.
    @Test(arguments: [
        200, 201, 202, 203, 204, 205, 226, 299, 300, 301, 302, 303, 307, 308, 399, 400, 402, 403, 404, 405, 408, 409, 410, 413,
    ])
    func explicitFreshnessServesAnyStatus(_ status: Int) { check(Case(response: Self.minute, expected: "fresh", status: status)) }

    @Test(arguments: [414, 415, 418, 421, 422, 425, 429, 431, 451, 499, 500, 501, 502, 503, 504, 505, 511, 599])
    func explicitFreshnessServesAnyErrorToo(_ status: Int) { check(Case(response: "Expires: @60", expected: "fresh", status: status)) }

    /// RFC 9110 §15.1: the statuses with heuristic freshness, here a tenth of their age.
    @Test(arguments: [200, 203, 204, 300, 301, 308, 404, 410])
    func guesses(_ status: Int) {
        check(Case(response: "Last-Modified: @-1000", expected: "fresh", status: status, now: 99))
        check(Case(response: "Last-Modified: @-1000", expected: "validate", status: status, now: 101))
    }

    /// A transient error is revalidated soon, whatever freshness it declares (docs/security-model.md#poisoned-errors).
    @Test(arguments: [405, 414, 501], ["Last-Modified: @-1000", "Cache-Control: max-age=60 | Last-Modified: @-1000"])
    func errorsAreNotServedForLong(_ status: Int, _ response: String) {
        check(Case(response: response, expected: "fresh", status: status, now: 9))
        check(Case(response: response, expected: "validate", status: status, now: 11))
    }

    @Test(arguments: [
        // §4.2.1: sources of the freshness lifetime.
        Case(response: "Expires: @60", expected: "fresh"), Case(response: "Expires: @60 | Date: @0", expected: "fresh", now: 59),
        Case(response: "Expires: thu, 01 jan 2026 00:01:00 gmt", expected: "fresh", now: 59),
        Case(response: "Expires: Thursday, 01-Jan-26 00:01:00 GMT", expected: "fresh", now: 59),
        Case(response: "Expires: Thu Jan  1 00:01:00 2026", expected: "fresh", now: 59),
        Case(response: "Expires: Thu, 01 Jan 2026 00:01:00 UTC | ETag: \"a\"", expected: "validate", now: 0),
        Case(response: "Expires: Thu, 1 Jan 2026 00:01:00 GMT", expected: "anew"), Case(response: "Expires: 0", expected: "anew"),
        Case(response: "Expires: @60 | Expires: @60", expected: "anew"),
        Case(response: "Expires: @60 | Pragma: no-cache", expected: "fresh"),
        Case(response: "Expires: 0 | Cache-Control: max-age=60", expected: "fresh"),
        Case(response: "Expires: @60 | Cache-Control: max-age=0", expected: "anew"),
        Case(response: "Cache-Control: max-age=60 | Cache-Control: max-age=0", expected: "anew"),
        Case(response: "Cache-Control: s-maxage=60, max-age=0", expected: "fresh"),
        Case(response: "Cache-Control: s-maxage=0, max-age=60", expected: "anew"),
        Case(response: "Cache-Control: max-age=99999999999999999999", expected: "fresh", now: 2_147_483_000),
        // §4.2.3: age on arrival.
        Case(response: minute + " | Age: 59", expected: "fresh", now: 0), Case(response: minute + " | Age: 60", expected: "anew", now: 0),
        Case(response: minute + " | Age: 59, 0", expected: "fresh", now: 0),
        Case(response: minute + " | Age: 60 | Age: 0", expected: "anew"),
        Case(response: minute + " | Age: -60", expected: "fresh"), Case(response: minute + " | Age: 1e9", expected: "fresh"),
        Case(response: minute + " | Age: 99999999999999999999", expected: "anew"),
        Case(response: minute + " | Date: @-61", expected: "anew"), Case(response: minute + " | Date: @9999", expected: "fresh", now: 59),
        Case(response: minute + " | Date: @-50 | Age: 20", expected: "fresh", now: 9),
        Case(response: minute + " | Date: @-50 | Age: 20", expected: "anew", now: 10),
        // §5.2.2: directives of the response.
        Case(response: "Cache-Control: must-understand, no-store, max-age=60", expected: "fresh"),
        Case(response: "Cache-Control: no-cache=\"X\", max-age=60 | X: 1", expected: "fresh"),
        Case(response: "Cache-Control: no-cache, max-age=60 | ETag: \"a\"", expected: "validate"),
        Case(response: "Cache-Control: private, max-age=60", expected: "not stored: private"),
        Case(response: "Cache-Control: private=\"X\", max-age=60", expected: "fresh"),
        Case(response: "Cache-Control: PRIVATE, max-age=60", expected: "not stored: private"),
        // §3.5: a response to a request with credentials needs explicit permission to be shared.
        Case(response: minute, expected: "not stored: credentials", first: "Authorization: x"),
        Case(response: minute + ", public", expected: "fresh", first: "Authorization: x", then: ""),
        Case(response: "Cache-Control: s-maxage=60", expected: "fresh", first: "Authorization: x", then: ""),
        Case(response: minute + ", must-revalidate", expected: "fresh", first: "Authorization: x", then: "Authorization: y"),
        Case(response: minute + ", proxy-revalidate", expected: "not stored: credentials", first: "Authorization: x"),
        // §4.1.
        Case(response: minute + " | Vary: A", expected: "fresh", first: "A: 1"),
        Case(response: minute + " | Vary: A", expected: "vary-miss", first: "A: 1", then: "A: 2"),
        // RFC 9110 §9.3.3: a POST response may be used for a later GET.
        Case(response: minute + " | Content-Location: /v1/notes", expected: "fresh", then: "", method: .post),
        Case(response: minute + " | Content-Location: /v1/notes | ETag: \"a\"", expected: "validate", then: "", now: 61, method: .post),
        Case(response: minute, expected: "not stored: method", then: "", method: .post),
        Case(response: minute + " | Content-Location: /v1/notes", expected: "not stored: method", then: "", method: .put),
        // RFC 9111 §3.3: a stored part serves only ranges within it.
        Case(response: minute + " | Content-Range: bytes 0-9/99", expected: "fresh", status: 206, first: "Range: bytes=0-9"),
        Case(
            response: minute + " | Content-Range: bytes 0-9/99", expected: "partial", status: 206, first: "Range: bytes=0-9",
            then: "Range: bytes=0-10"),
        Case(response: minute + " | Content-Range: bytes 0-9/99", expected: "partial", status: 206, first: "Range: bytes=0-9", then: ""),
        Case(
            response: minute + " | Content-Range: bytes 0-9/99 | ETag: \"a\"", expected: "complete", status: 206,
            first: "Range: bytes=0-9", then: ""),
        Case(response: minute + " | Content-Range: bytes 0-9/10", expected: "fresh", status: 206, first: "Range: bytes=0-", then: ""),
        Case(response: minute + " | Content-Range: bytes 0-9/99", expected: "not stored: partial", status: 206),
        Case(response: "Content-Range: bytes 0-9/99", expected: "stale", status: 206, first: "Range: bytes=0-9"),
    ])
    func storedAndMetAgain(_ given: Case) { check(given) }

    private func check(_ given: Case) { #expect(outcome(given) == given.expected) }
}
