// `ttl` of a route: its bounds, what it overrides, and what it never does.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct LifetimeRuleTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var fields: String
        var rule: LifetimeRule
        var lifetime: Int64
        var source: Freshness.Source
        var status = 200
        var testDescription: String { "\(status) \(fields)" }
    }

    private static func rule(
        _ fallback: Int64? = nil, min least: Int64? = nil, max most: Int64? = nil, overrides: Bool = false
    ) -> LifetimeRule {
        var rule = LifetimeRule()
        (rule.fallback, rule.least, rule.most) = (fallback.map(TimeSpan.seconds), least.map(TimeSpan.seconds), most.map(TimeSpan.seconds))
        rule.overrides = overrides
        return rule
    }

    @Test(arguments: [
        Case(fields: "", rule: rule(70), lifetime: 70, source: .assigned),
        Case(fields: "Last-Modified: @-1000", rule: rule(70), lifetime: 70, source: .assigned),
        Case(fields: "Cache-Control: max-age=5", rule: rule(70), lifetime: 5, source: .maxAge),
        Case(fields: "Cache-Control: no-cache", rule: rule(70), lifetime: 0, source: .none),
        // Bounds.
        Case(fields: "Last-Modified: @-1000", rule: rule(min: 200), lifetime: 200, source: .route),
        Case(fields: "Last-Modified: @-1000", rule: rule(max: 50), lifetime: 50, source: .route),
        Case(fields: "Last-Modified: @-1000", rule: rule(min: 50, max: 200), lifetime: 100, source: .heuristic),
        Case(fields: "", rule: rule(min: 200), lifetime: 200, source: .route),
        Case(fields: "Cache-Control: max-age=315360000", rule: rule(max: 60), lifetime: 60, source: .route),
        Case(fields: "Cache-Control: max-age=5", rule: rule(min: 60), lifetime: 5, source: .maxAge),
        Case(fields: "Cache-Control: must-revalidate", rule: rule(min: 60), lifetime: 0, source: .none),
        // Overriding.
        Case(fields: "Cache-Control: max-age=5", rule: rule(min: 60, overrides: true), lifetime: 60, source: .route),
        Case(fields: "Cache-Control: max-age=5", rule: rule(70, overrides: true), lifetime: 5, source: .maxAge),
        Case(fields: "Cache-Control: max-age=0", rule: rule(70, overrides: true), lifetime: 70, source: .route),
        Case(fields: "Expires: 0", rule: rule(70, overrides: true), lifetime: 70, source: .route),
        Case(fields: "Cache-Control: no-cache", rule: rule(70, overrides: true), lifetime: 70, source: .route),
        Case(fields: "Cache-Control: no-cache, max-age=5", rule: rule(70, max: 30, overrides: true), lifetime: 30, source: .route),
        Case(fields: "Cache-Control: no-cache", rule: rule(min: 60, overrides: true), lifetime: 60, source: .route),
        Case(fields: "Cache-Control: must-revalidate", rule: rule(70, overrides: true), lifetime: 70, source: .route),
        // What says nothing about the next request does not become fresh, and errors stay so for a moment only.
        Case(fields: "", rule: rule(70, min: 60, overrides: true), lifetime: 0, source: .none, status: 302),
        Case(fields: "", rule: rule(70, min: 60, overrides: true), lifetime: 0, source: .none, status: 500),
        Case(fields: "Cache-Control: max-age=5", rule: rule(min: 60, overrides: true), lifetime: 10, source: .route, status: 500),
    ])
    func lifetime(_ given: Case) {
        var stored = CachingFixture.stored(given.fields, status: given.status)
        stored.adopt(given.rule)
        let freshness = Freshness.of(stored, now: CachingFixture.start)
        #expect(freshness.lifetime == .seconds(given.lifetime) && freshness.source == given.source, "\(freshness)")
    }

    @Test(arguments: [rule(), rule(70), rule(1, min: 2, max: 3, overrides: true), rule(min: 0), rule(overrides: true)])
    func aRuleIsKeptWithTheCopyAndMakesNoVariant(_ rule: LifetimeRule) {
        var stored = CachingFixture.stored("Vary: Accept", for: "Accept: text/plain")
        let variant = Vary.variantKey(stored.requestFields)
        stored.adopt(rule)
        let again = StoredResponse(
            head: stored.head, requestFields: stored.requestFields, requestTime: stored.requestTime, responseTime: stored.responseTime)
        #expect(again.lifetimeRule == rule)
        #expect(Vary.variantKey(again.requestFields) == variant)
        stored.adopt(nil)
        #expect(stored.lifetimeRule == nil && stored.requestFields.count == 1)
    }

    /// A client cannot bring a rule of its own by a field that the response varies by.
    @Test func aFieldOfTheClientIsNoRule() {
        var stored = CachingFixture.stored("Vary: Rockpool-Lifetime", for: "Rockpool-Lifetime: default=9000000")
        #expect(stored.lifetimeRule != nil)
        stored.adopt(nil)
        #expect(stored.lifetimeRule == nil)
    }

    @Test func anOverriddenResponseIsServedWithoutValidation() {
        let context = ReuseContext()
        func decision(_ stored: StoredResponse, at seconds: Int64) -> Reuse {
            Reuse.decide(candidates: [stored], request: CachingFixture.request(), context: context, now: CachingFixture.at(seconds))
        }
        var stored = CachingFixture.stored("Cache-Control: no-cache, must-revalidate | ETag: \"a\"")
        #expect(decision(stored, at: 1).word == "validate")
        stored.adopt(Self.rule(70, overrides: true))
        #expect(decision(stored, at: 1).word == "fresh" && decision(stored, at: 1).reason == "route")
        #expect(decision(stored, at: 70).word == "validate")
        // A write still makes it out of date.
        stored.isInvalidated = true
        #expect(decision(stored, at: 1).word == "validate")
    }

    /// RFC 9111 §3.5: the promise to validate is what lets others have it.
    @Test func whatIsSharedByAPromiseToValidateKeepsIt() {
        var stored = CachingFixture.stored("Cache-Control: max-age=0, must-revalidate")
        stored.owner = "ann"
        stored.adopt(Self.rule(70, overrides: true))
        #expect(!Freshness.of(stored, now: CachingFixture.start).isFresh)
        #expect(!stored.isReadable(by: ["bob"], now: CachingFixture.start) && stored.isReadable(by: ["ann"], now: CachingFixture.start))
    }

    @Test func aHitSaysThatTheRouteSetItsLifetime() {
        var stored = CachingFixture.stored("Cache-Control: max-age=0")
        stored.adopt(Self.rule(70, overrides: true))
        let other = CachingFixture.stored("Cache-Control: max-age=60")
        #expect(CacheStatus.hit(.of(stored, now: CachingFixture.at(10))).fieldValue == "rockpool; hit; ttl=60; detail=route-ttl")
        #expect(CacheStatus.hit(.of(other, now: CachingFixture.at(10))).fieldValue == "rockpool; hit; ttl=50")
    }
}
