// RFC 9111 §4.2: lifetime, age and the resulting freshness, to the second.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct FreshnessTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var fields: String
        var lifetime: Int64
        var source: Freshness.Source
        var status = 200
        var ttl: Int64?
        var testDescription: String { "\(status) \(fields)" }
    }

    @Test(arguments: [
        Case(fields: "Cache-Control: max-age=60", lifetime: 60, source: .maxAge),
        Case(fields: "Cache-Control: max-age=60, s-maxage=10", lifetime: 10, source: .sMaxAge),
        Case(fields: "Cache-Control: s-maxage=100, max-age=1", lifetime: 100, source: .sMaxAge),
        Case(fields: "Cache-Control: private, s-maxage=100, max-age=1", lifetime: 1, source: .maxAge),
        Case(fields: "Cache-Control: max-age=60 | Expires: @10", lifetime: 60, source: .maxAge),
        Case(fields: "Cache-Control: max-age=0 | Expires: @10", lifetime: 0, source: .maxAge),
        Case(fields: "Cache-Control: max-age=x | Expires: @10", lifetime: 0, source: .maxAge),
        Case(fields: "Expires: @10", lifetime: 10, source: .expires),
        Case(fields: "Date: @-100 | Expires: @10", lifetime: 110, source: .expires),
        Case(fields: "Date: @10 | Expires: @10", lifetime: 0, source: .expires),
        Case(fields: "Date: @20 | Expires: @10", lifetime: 0, source: .expires),
        Case(fields: "Date: bad | Expires: @10", lifetime: 10, source: .expires),
        Case(fields: "Expires: 0", lifetime: 0, source: .expires), Case(fields: "Expires: -1", lifetime: 0, source: .expires),
        Case(fields: "Expires: ", lifetime: 0, source: .expires), Case(fields: "Expires: tomorrow", lifetime: 0, source: .expires),
        Case(fields: "Expires: @10 | Expires: @10", lifetime: 0, source: .expires),
        Case(fields: "Expires: bad | Last-Modified: @-1000", lifetime: 0, source: .expires),
        Case(fields: "Rockpool-Cache-Control: foo | Expires: @10", lifetime: 0, source: .none),
        // Heuristic freshness: a tenth of the age, at most one day, for cacheable statuses or `public`.
        Case(fields: "Last-Modified: @-1000", lifetime: 100, source: .heuristic),
        Case(fields: "Last-Modified: @-10000000", lifetime: 86_400, source: .heuristic),
        Case(fields: "Date: @-500 | Last-Modified: @-1000", lifetime: 50, source: .heuristic),
        Case(fields: "Last-Modified: @0", lifetime: 0, source: .none), Case(fields: "Last-Modified: @5", lifetime: 0, source: .none),
        Case(fields: "Last-Modified: bad", lifetime: 0, source: .none), Case(fields: "", lifetime: 0, source: .none),
        Case(fields: "Last-Modified: @-1000", lifetime: 100, source: .heuristic, status: 404),
        Case(fields: "Last-Modified: @-1000", lifetime: 0, source: .none, status: 302),
        Case(fields: "Last-Modified: @-1000", lifetime: 0, source: .none, status: 500),
        Case(fields: "Last-Modified: @-1000 | Cache-Control: public", lifetime: 100, source: .heuristic, status: 302),
        Case(fields: "Last-Modified: @-1000 | Cache-Control: must-revalidate", lifetime: 100, source: .heuristic),
        // The `ttl` of a category replaces the heuristic only.
        Case(fields: "", lifetime: 70, source: .assigned, ttl: 70),
        Case(fields: "Last-Modified: @-1000", lifetime: 70, source: .assigned, ttl: 70),
        Case(fields: "Last-Modified: @-1000", lifetime: 0, source: .assigned, ttl: 0),
        Case(fields: "Cache-Control: max-age=5", lifetime: 5, source: .maxAge, ttl: 70),
        Case(fields: "Cache-Control: max-age=0", lifetime: 0, source: .maxAge, ttl: 70),
        Case(fields: "Expires: 0", lifetime: 0, source: .expires, ttl: 70),
        Case(fields: "Cache-Control: no-cache", lifetime: 0, source: .none, ttl: 70),
        Case(fields: "Cache-Control: must-revalidate", lifetime: 0, source: .none, ttl: 70),
        Case(fields: "", lifetime: 0, source: .none, status: 503, ttl: 70),
    ])
    func lifetime(_ given: Case) {
        let stored = CachingFixture.stored(given.fields, status: given.status, assignedTTL: given.ttl.map(TimeSpan.seconds))
        let freshness = Freshness.of(stored, now: CachingFixture.start)
        #expect(freshness.lifetime == .seconds(given.lifetime))
        #expect(freshness.source == given.source)
    }

    @Test(arguments: [
        ("", 0, 0, 0), ("", 30, 0, 30), ("Age: 100", 0, 0, 100), ("Age: 100", 5, 2, 107), ("Date: @-40", 5, 0, 45), ("Date: @40", 5, 0, 5),
        ("Date: @-40 | Age: 10", 5, 2, 45), ("Date: @-10 | Age: 40", 5, 2, 47), ("Age: 100, 5", 0, 0, 100), ("Age: 7 | Age: 100", 0, 0, 7),
        ("Age: -5", 1, 0, 1), ("Age: x", 1, 0, 1), ("Age: 1.5", 1, 0, 1), ("Age: \"7\"", 1, 0, 1), ("Age: x, 7", 1, 0, 1),
        ("Age:", 1, 0, 1),
        ("Age: 2147483648", 0, 0, 2_147_483_648), ("Age: 99999999999999999999", 0, 0, 2_147_483_648), ("", -50, 0, 0),
        ("Age: 9", -50, 0, 9),
    ])
    func age(_ fields: String, elapsed: Int64, delay: Int64, expected: Int64) {
        var stored = CachingFixture.stored(fields)
        stored.requestTime = CachingFixture.at(-delay)
        #expect(Freshness.of(stored, now: CachingFixture.at(elapsed)).age == .seconds(expected))
    }

    @Test func freshUntilTheAgeReachesTheLifetime() {
        let stored = CachingFixture.stored("Cache-Control: max-age=60 | Date: @0")
        #expect(Freshness.of(stored, now: CachingFixture.start + .milliseconds(59_999)).isFresh)
        let after = Freshness.of(stored, now: CachingFixture.at(60))
        #expect(!after.isFresh && after.remaining == .zero && after.staleness == .zero)
        #expect(Freshness.of(stored, now: CachingFixture.at(90)).remaining == .seconds(-30))
        #expect(Freshness.of(stored, now: CachingFixture.at(90)).staleness == .seconds(30))
    }

    @Test func extremesDoNotTrap() {
        var stored = CachingFixture.stored(
            "Age: 99999999999 | Date: Thu, 01 Jan 1970 00:00:00 GMT | Expires: Fri, 31 Dec 9999 23:59:59 GMT")
        for moment in [Timestamp(milliseconds: .min), .distantPast, .distantFuture] {
            stored.requestTime = moment
            stored.responseTime = moment
            for now in [Timestamp(milliseconds: .min), .distantPast, .distantFuture] {
                #expect(Freshness.of(stored, now: now).age >= .zero)
            }
        }
    }

    @Test func changingTheHeadChangesWhatFollowsFromIt() {
        var stored = CachingFixture.stored("Cache-Control: max-age=60")
        stored.head.fields[.cacheControl] = "max-age=5"
        #expect(Freshness.of(stored, now: CachingFixture.start).lifetime == .seconds(5))
    }

    /// docs/security-model.md#poisoned-errors: a transient error is fresh for at most ten seconds, whatever it declares; an error about the
    /// resource itself keeps its declared freshness.
    @Test(arguments: [(400, 10), (403, 10), (405, 10), (429, 10), (500, 10), (503, 10), (404, 600), (410, 600), (451, 600), (200, 600)])
    func anErrorOfTheMomentIsServedForAMoment(status: Int, seconds: Int64) {
        let stored = CachingFixture.stored("Cache-Control: max-age=600", status: status)
        #expect(Freshness.of(stored, now: stored.responseTime).lifetime == .seconds(seconds))
        #expect(Freshness.of(stored, now: stored.responseTime + .seconds(seconds - 1)).isFresh)
        #expect(!Freshness.of(stored, now: stored.responseTime + .seconds(seconds)).isFresh)
        let short = CachingFixture.stored("Cache-Control: max-age=5", status: status)
        #expect(Freshness.of(short, now: short.responseTime).lifetime == .seconds(5))
    }

    /// After the clock was set back by a little, the age is zero; by more, the age is unknown.
    @Test(arguments: [(-10, true), (-11, false), (-86_400 * 3650, false)]) func whatCameInTheFutureIsAskedAbout(
        _ seconds: Int64, isFresh: Bool
    ) {
        let freshness = Freshness.of(CachingFixture.stored("Cache-Control: max-age=60"), now: CachingFixture.at(seconds))
        #expect(freshness.isFresh == isFresh && freshness.age == .zero)
    }
}
