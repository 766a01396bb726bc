// RFC 9111 §5.2: the meaning of a Cache-Control value in all its spellings.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct CacheControlTests {
    @Test(arguments: [
        ("max-age=60", 60), ("Max-Age=60", 60), ("MAX-AGE=60", 60), ("max-age=\"60\"", 60), ("max-age=0060", 60), ("max-age=0", 0),
        ("public,max-age=60", 60), ("  public ,\tmax-age=60 , ", 60), (",,,max-age=60,,", 60), ("foo=\"a, max-age=5\", max-age=60", 60),
        ("foo=\"\\\"max-age=5\", max-age=60", 60), ("max-age=2147483648", 2_147_483_648), ("max-age=2147483649", 2_147_483_648),
        ("max-age=99999999999999999999999999", 2_147_483_648),
        // Of several values the stricter counts; an invalid value means already stale.
        ("max-age=60, max-age=30", 30), ("max-age=30, max-age=60", 30), ("max-age=60, max-age=x", 0), ("max-age", 0), ("max-age=", 0),
        ("max-age=-1", 0), ("max-age=+60", 0), ("max-age=60.5", 0), ("max-age=1e3", 0), ("max-age='60'", 0), ("max-age=60s", 0),
        ("max-age =60", 0), ("max-age= 60", 0), ("max-age=\"60", 0), ("max-age=60 seconds", 0), ("max-age=60;public", 0),
    ])
    func maxAge(_ value: String, seconds: Int64) {
        #expect(CacheControl([.cacheControl: value]).maxAge == .seconds(seconds))
    }

    @Test(arguments: ["", "public", "s-maxage=60", "xmax-age=60", "max-age-x=60", "foo=\"max-age=60\"", "\"max-age=60\"x", "max_age=60"])
    func noMaxAge(_ value: String) {
        let directives = CacheControl([.cacheControl: value])
        #expect(directives.maxAge == nil || value == "\"max-age=60\"x")
    }

    @Test(arguments: [
        ("no-cache", CacheControl.Scope.all), ("No-Cache", .all), ("no-cache=\"Set-Cookie\"", .fields([.setCookie])),
        ("no-cache=set-cookie", .fields([.setCookie])), ("no-cache=\"a, Set-Cookie\"", .fields(CacheControlTests.named("a", "set-cookie"))),
        ("no-cache=\"a\", no-cache=\"b, a\"", .fields(CacheControlTests.named("a", "b"))), ("no-cache=\"a\", no-cache", .all),
        ("no-cache, no-cache=\"a\"", .all),
        ("no-cache=\"\"", .all), ("no-cache=", .all), ("no-cache=\"a b\"", .all), ("no-cache=\"a", .all), ("no-cache;x", .all),
        ("", .absent),
        ("private", .absent), ("foo=\"no-cache\"", .absent),
    ])
    func noCache(_ value: String, scope: CacheControl.Scope) {
        #expect(CacheControl([.cacheControl: value]).noCache == scope)
    }

    /// A restricting directive is recognised anywhere in the value; a permissive one only as a directive of its own.
    @Test(arguments: ["no-store", "NO-STORE", "x no-store", "max-age=\"10, no-store", "public; no-store", "no-store=1", "a=b=c, no-store"])
    func noStoreIsNeverMissed(_ value: String) {
        #expect(CacheControl([.cacheControl: value]).noStore)
    }

    @Test func looseningNeedsItsOwnPlace() {
        #expect(CacheControl([.cacheControl: "public, immutable"]).isPublic)
        #expect(CacheControl([.cacheControl: "public, immutable"]).immutable)
        #expect(!CacheControl([.cacheControl: "public x, immutable;x"]).isPublic)
        #expect(!CacheControl([.cacheControl: "public x, immutable;x"]).immutable)
    }

    @Test func allDirectivesOfAResponse() {
        let directives = CacheControl(
            CachingFixture.fields(
                "Cache-Control: private, must-revalidate, s-maxage=1 | cache-control: proxy-revalidate, must-understand, no-transform"
                    + " | CACHE-CONTROL: stale-while-revalidate=5, stale-if-error=6, stale-if-error=4"))
        #expect(directives.isPrivate == .all && directives.mustRevalidate && directives.proxyRevalidate)
        #expect(directives.mustUnderstand && directives.noTransform && directives.sMaxAge == .seconds(1))
        #expect(directives.staleWhileRevalidate == .seconds(5) && directives.staleIfError == .seconds(4))
    }

    @Test(arguments: [
        ("max-stale", TimeSpan.forever), ("max-stale=10", .seconds(10)), ("max-stale=x", .zero), ("max-stale, max-stale=7", .seconds(7)),
        ("max-stale=", .zero),
    ])
    func maxStale(_ value: String, span: TimeSpan) {
        #expect(CacheControl([.cacheControl: value]).maxStale == span)
    }

    @Test func theLargerMinFreshIsTheStricter() {
        #expect(CacheControl([.cacheControl: "min-fresh=5, min-fresh=9, min-fresh=x"]).minFresh == .seconds(9))
    }

    @Test(arguments: [
        ("Pragma: no-cache", true), ("Pragma: No-Cache, x", true), ("Pragma: x | Pragma: no-cache", true), ("Pragma: nocache", false),
        ("Pragma: no-cache | Cache-Control: max-age=5", false), ("Cache-Control: x | Pragma: no-cache", false),
        ("Cache-Control: no-cache", true),
    ])
    func pragmaCountsOnlyAlone(_ text: String, isNoCache: Bool) {
        #expect((CacheControl(request: CachingFixture.fields(text)).noCache == .all) == isNoCache)
    }

    @Test func pragmaOfAResponseSaysNothing() {
        #expect(CacheControl(CachingFixture.fields("Pragma: no-cache")) == CacheControl())
    }

    /// RFC 9213 §2.2: a valid field targeted at this cache replaces Cache-Control; an invalid one counts as absent.
    @Test(arguments: [
        ("max-age=7", 7, true), ("max-age=7;x=1, foo", 7, true), ("max-age=7, max-age=9", 9, true), ("max-age=\"7\"", 60, false),
        ("", 60, false), ("max-age=7,", 60, false), ("Max-Age=7", 60, false), ("max-age=7 no-store", 60, false), ("max-age=1.5", 60, false),
        ("max-age=-1", 0, true), ("max-age=99999999999", 2_147_483_648, true), ("max-age=9999999999999999", 60, false),
        ("max-age=(1 2)", 60, false), ("x=\"\\\", max-age=9\", max-age=7", 7, true),
    ])
    func targetedField(_ value: String, seconds: Int64, isTargeted: Bool) {
        let governing = CacheControl.governing(in: CachingFixture.fields("Cache-Control: max-age=60 | Rockpool-Cache-Control: \(value)"))
        #expect(governing.directives.maxAge == .seconds(seconds))
        #expect(governing.isTargeted == isTargeted)
    }

    /// Precedence: Rockpool's own targeted field, then that of content delivery networks, then `Cache-Control` and `Expires`; an empty or
    /// malformed field is skipped (RFC 9213 §2.2).
    @Test(arguments: [
        ("CDN-Cache-Control: max-age=5", 5), ("CDN-Cache-Control: max-age=5 | Rockpool-Cache-Control: max-age=6", 6),
        ("CDN-Cache-Control: max-age=5 | Rockpool-Cache-Control: ", 5), ("CDN-Cache-Control: Max-Age=5", 60), ("CDN-Cache-Control:", 60),
        ("CDN-Cache-Control: max-age=5 | Rockpool-Cache-Control: &", 5), ("CDN-Cache-Control: foo", 0),
        ("Surrogate-Control: max-age=5", 60),
        ("CDN-Cache-Control: max-age=100", 100), ("CDN-Cache-Control: s-maxage=7, max-age=100", 7), ("CDN-Cache-Control: foo, bar=(", 60),
    ])
    func orderOfTargetedFields(_ fields: String, seconds: Int64) {
        let stored = CachingFixture.stored(fields + " | Cache-Control: max-age=60 | Expires: @99")
        #expect(Freshness.of(stored, now: CachingFixture.start).lifetime == .seconds(seconds))
    }

    @Test(arguments: [("no-store", Storability.Reason.noStore), ("private", .isPrivate), ("no-cache", .neverReusable)])
    func aTargetedFieldRestricts(_ directive: String, reason: Storability.Reason) {
        let decide = { (fields: String) in
            Storability.decide(
                request: CachingFixture.request(), response: CachingFixture.response(fields), context: StorageContext())
        }
        #expect(decide("Cache-Control: max-age=60 | CDN-Cache-Control: max-age=60, \(directive)") == .refuse(reason))
        guard case .store = decide("Cache-Control: max-age=60, \(directive) | CDN-Cache-Control: max-age=60") else {
            Issue.record("only the targeted field must be read")
            return
        }
    }

    static func named(_ names: String...) -> [HTTPField.Name] { names.compactMap { HTTPField.Name($0) } }
}
