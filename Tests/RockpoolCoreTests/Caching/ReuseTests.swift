// RFC 9111 §4 and §5.2.1, RFC 5861 §3: tables of requests and stored responses, all received at second 0.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct ReuseTests {
    enum Expected: Sendable, Equatable {
        case fresh, offline, refreshBehind, maxStale, cacheOnly, complete
        case validate(Reuse.ValidationReason)
        case none(NoReuse)
        case gatewayTimeout(NoReuse)
    }

    struct Case: Sendable, CustomTestStringConvertible {
        var stored: String
        var now: Int64
        var expected: Expected
        var request = ""
        var context = ReuseContext()
        var testDescription: String { "\(stored) @\(now) \(request) \(context.strategy) \(context.policy) \(context.isReachable)" }
    }

    private func outcome(_ given: Case) -> Expected {
        let decision = Reuse.decide(
            candidates: [CachingFixture.stored(given.stored)], request: CachingFixture.request(given.request), context: given.context,
            now: CachingFixture.at(given.now))
        switch decision {
        case .fresh: return .fresh
        case .stale(_, _, .offline), .stale(_, _, .variant), .stale(_, _, .budget): return .offline
        case .stale(_, _, .staleWhileRevalidate): return .refreshBehind
        case .stale(_, _, .maxStale): return .maxStale
        case .stale(_, _, .cacheOnly): return .cacheOnly
        case .validate(_, _, _, let reason): return .validate(reason)
        case .complete: return .complete
        case .none(let reason): return .none(reason)
        case .gatewayTimeout(let reason): return .gatewayTimeout(reason)
        }
    }

    static let minute = "Cache-Control: max-age=60"

    @Test(arguments: [
        Case(stored: minute, now: 59, expected: .fresh), Case(stored: minute, now: 60, expected: .validate(.stale)),
        Case(stored: minute, now: -5, expected: .fresh), Case(stored: minute, now: -500, expected: .validate(.stale)),
        Case(stored: "", now: 0, expected: .validate(.stale)),
        Case(stored: minute + ", no-cache", now: 1, expected: .validate(.noCache)),
        Case(stored: minute + ", no-cache=\"x\"", now: 1, expected: .fresh),
        Case(stored: minute + ", must-revalidate", now: 1, expected: .fresh),
        Case(stored: minute + ", must-revalidate", now: 61, expected: .validate(.stale)),
        // no-cache, or its older form in Pragma.
        Case(stored: minute, now: 1, expected: .validate(.requestNoCache), request: "Cache-Control: no-cache"),
        Case(stored: minute, now: 1, expected: .validate(.requestNoCache), request: "Pragma: no-cache"),
        Case(stored: minute, now: 1, expected: .fresh, request: "Pragma: no-cache | Cache-Control: max-stale"),
        Case(stored: minute + ", immutable", now: 1, expected: .validate(.requestNoCache), request: "Cache-Control: no-cache"),
        // no-store: the response will not be stored, so validation has no benefit.
        Case(stored: minute, now: 1, expected: .none(.requestNoStore), request: "Cache-Control: no-store"),
        // max-age.
        Case(stored: minute, now: 30, expected: .fresh, request: "Cache-Control: max-age=30"),
        Case(stored: minute, now: 31, expected: .validate(.requestMaxAge), request: "Cache-Control: max-age=30"),
        Case(stored: minute, now: 0, expected: .validate(.requestMaxAge), request: "Cache-Control: max-age=0"),
        Case(stored: minute, now: 1, expected: .validate(.requestMaxAge), request: "Cache-Control: max-age=x"),
        Case(stored: minute, now: 61, expected: .validate(.stale), request: "Cache-Control: max-age=90"),
        Case(stored: minute, now: 40, expected: .fresh, request: "Cache-Control: max-age=30, max-stale=10"),
        Case(stored: minute, now: 41, expected: .validate(.requestMaxAge), request: "Cache-Control: max-age=30, max-stale=10"),
        Case(stored: minute, now: 65, expected: .maxStale, request: "Cache-Control: max-age=60, max-stale=10"),
        Case(stored: minute, now: 65, expected: .validate(.stale), request: "Cache-Control: max-age=50, max-stale=10"),
        // min-fresh.
        Case(stored: minute, now: 50, expected: .fresh, request: "Cache-Control: min-fresh=10"),
        Case(stored: minute, now: 51, expected: .validate(.requestMinFresh), request: "Cache-Control: min-fresh=10"),
        Case(stored: minute, now: 61, expected: .validate(.stale), request: "Cache-Control: min-fresh=10, max-stale"),
        // max-stale, and directives that forbid it.
        Case(stored: minute, now: 70, expected: .maxStale, request: "Cache-Control: max-stale=10"),
        Case(stored: minute, now: 71, expected: .validate(.stale), request: "Cache-Control: max-stale=10"),
        Case(stored: minute, now: 1_000_000, expected: .maxStale, request: "Cache-Control: max-stale"),
        Case(stored: minute + ", must-revalidate", now: 61, expected: .validate(.stale), request: "Cache-Control: max-stale"),
        Case(stored: minute + ", proxy-revalidate", now: 61, expected: .validate(.stale), request: "Cache-Control: max-stale"),
        Case(stored: minute + ", proxy-revalidate, private", now: 61, expected: .maxStale, request: "Cache-Control: max-stale"),
        Case(stored: "Cache-Control: s-maxage=60", now: 61, expected: .validate(.stale), request: "Cache-Control: max-stale"),
        Case(stored: minute + ", no-cache", now: 1, expected: .validate(.noCache), request: "Cache-Control: max-stale"),
        // stale-while-revalidate.
        Case(stored: minute + ", stale-while-revalidate=10", now: 70, expected: .refreshBehind),
        Case(stored: minute + ", stale-while-revalidate=10", now: 71, expected: .validate(.stale)),
        Case(stored: minute + ", stale-while-revalidate=0", now: 60, expected: .validate(.stale)),
        Case(stored: minute + ", stale-while-revalidate=10, must-revalidate", now: 61, expected: .validate(.stale)),
        Case(
            stored: minute + ", stale-while-revalidate=10", now: 61, expected: .validate(.requestNoCache),
            request: "Cache-Control: no-cache"),
        Case(stored: minute + ", stale-while-revalidate=10", now: 61, expected: .validate(.stale), request: "Cache-Control: max-age=90"),
        // only-if-cached.
        Case(stored: minute, now: 1, expected: .fresh, request: "Cache-Control: only-if-cached"),
        Case(stored: minute, now: 61, expected: .gatewayTimeout(.stale), request: "Cache-Control: only-if-cached"),
        Case(stored: minute, now: 61, expected: .maxStale, request: "Cache-Control: only-if-cached, max-stale"),
        Case(stored: minute, now: 1, expected: .gatewayTimeout(.requestDirective), request: "Cache-Control: only-if-cached, no-cache"),
        Case(stored: minute, now: 1, expected: .fresh, request: "Cache-Control: only-if-cached, no-store"),
        // Conditions that only the origin can evaluate; and no stored response is used for a request that may override its method.
        Case(stored: minute, now: 1, expected: .none(.originCondition), request: "If-Match: \"a\""),
        Case(stored: minute, now: 1, expected: .none(.originCondition), request: "If-Unmodified-Since: @0"),
        Case(stored: minute, now: 1, expected: .none(.methodOverride), request: "X-HTTP-Method-Override: DELETE"),
        Case(stored: minute, now: 1, expected: .fresh, request: "X-Forwarded-Host: evil"),
        Case(stored: minute, now: 1, expected: .fresh, request: "Range: bytes=0-1"),
        Case(stored: minute, now: 1, expected: .none(.requestBody), context: ReuseContext(hasBody: true)),
        Case(stored: minute + " | Vary: Accept", now: 1, expected: .none(.varyMiss), request: "Accept: x/y"),
        Case(
            stored: minute + " | Vary: Accept", now: 1, expected: .gatewayTimeout(.varyMiss),
            request: "Accept: x/y | Cache-Control: only-if-cached"),
    ])
    func standardAndReachable(_ given: Case) { #expect(outcome(given) == given.expected) }

    static func unreachable(_ policy: CachePolicy, _ strategy: Strategy = .cacheFirst, window: TimeSpan = .forever) -> ReuseContext {
        ReuseContext(policy: policy, strategy: strategy, offlineWindow: window, isReachable: false)
    }

    @Test(arguments: [
        Case(stored: minute, now: 1, expected: .fresh, context: unreachable(.standard)),
        Case(stored: minute, now: 61, expected: .offline, context: unreachable(.standard)),
        Case(stored: minute, now: 61, expected: .validate(.stale), context: unreachable(.standard, window: .seconds(60))),
        Case(stored: minute + ", must-revalidate", now: 61, expected: .validate(.stale), context: unreachable(.standard)),
        Case(stored: minute + ", proxy-revalidate", now: 61, expected: .validate(.stale), context: unreachable(.standard)),
        Case(stored: "Cache-Control: s-maxage=60", now: 61, expected: .validate(.stale), context: unreachable(.standard)),
        Case(stored: minute + ", no-cache", now: 1, expected: .validate(.noCache), context: unreachable(.standard)),
        Case(
            stored: minute, now: 1, expected: .validate(.requestNoCache), request: "Cache-Control: no-cache",
            context: unreachable(.standard)),
        Case(stored: minute, now: 61, expected: .offline, request: "Cache-Control: only-if-cached", context: unreachable(.standard)),
        // Offline-first: stale responses are served while the upstream is unreachable.
        Case(stored: minute, now: 1, expected: .fresh, context: unreachable(.offlineFirst)),
        Case(stored: minute, now: 400, expected: .offline, context: unreachable(.offlineFirst, window: .seconds(400))),
        Case(stored: minute, now: 401, expected: .none(.offlineWindow), context: unreachable(.offlineFirst, window: .seconds(400))),
        Case(stored: minute + ", must-revalidate", now: 61, expected: .offline, context: unreachable(.offlineFirst)),
        Case(stored: minute + ", no-cache, private", now: 1, expected: .offline, context: unreachable(.offlineFirst)),
        Case(stored: "Cache-Control: max-age=0", now: 1, expected: .offline, context: unreachable(.offlineFirst)),
        Case(stored: "", now: -100, expected: .offline, context: unreachable(.offlineFirst, window: .zero)),
        Case(stored: minute, now: 61, expected: .offline, request: "Cache-Control: no-cache", context: unreachable(.offlineFirst)),
        Case(stored: minute, now: 1, expected: .fresh, request: "Cache-Control: no-store", context: unreachable(.offlineFirst)),
        Case(stored: minute, now: 61, expected: .offline, request: "Cache-Control: max-age=0", context: unreachable(.offlineFirst)),
        Case(stored: minute, now: 61, expected: .offline, request: "Cache-Control: only-if-cached", context: unreachable(.offlineFirst)),
        Case(stored: minute, now: 61, expected: .offline, request: "If-Match: \"a\"", context: unreachable(.offlineFirst)),
        Case(stored: minute, now: 61, expected: .offline, context: unreachable(.offlineFirst, .networkFirst)),
        Case(stored: minute, now: 61, expected: .offline, context: unreachable(.offlineFirst, .staleWhileRevalidate)),
        Case(stored: minute, now: 61, expected: .none(.bypass), context: unreachable(.offlineFirst, .networkOnly)),
        Case(
            stored: minute + " | Vary: Accept", now: 1, expected: .none(.varyMiss), request: "Accept: x/y",
            context: unreachable(.offlineFirst)),
    ])
    func disconnected(_ given: Case) { #expect(outcome(given) == given.expected) }

    static func by(_ strategy: Strategy, _ policy: CachePolicy = .offlineFirst, window: TimeSpan = .forever) -> ReuseContext {
        ReuseContext(policy: policy, strategy: strategy, offlineWindow: window)
    }

    @Test(arguments: [
        Case(stored: minute, now: 61, expected: .validate(.stale), context: by(.cacheFirst)),
        Case(stored: minute + ", no-cache", now: 1, expected: .validate(.noCache), context: by(.cacheFirst)),
        Case(stored: minute, now: 1, expected: .validate(.networkFirst), context: by(.networkFirst)),
        Case(stored: minute, now: 61, expected: .validate(.stale), context: by(.networkFirst)),
        Case(stored: minute + ", immutable", now: 1, expected: .fresh, context: by(.networkFirst)),
        Case(stored: minute + ", immutable", now: 61, expected: .validate(.stale), context: by(.networkFirst)),
        Case(stored: minute, now: 1, expected: .fresh, context: by(.staleWhileRevalidate)),
        Case(stored: minute, now: 61, expected: .refreshBehind, context: by(.staleWhileRevalidate)),
        Case(stored: minute + ", no-cache", now: 1, expected: .refreshBehind, context: by(.staleWhileRevalidate)),
        Case(stored: minute + ", must-revalidate", now: 61, expected: .validate(.stale), context: by(.staleWhileRevalidate, .standard)),
        Case(stored: minute, now: 61, expected: .refreshBehind, context: by(.staleWhileRevalidate, .standard)),
        Case(stored: minute, now: 91, expected: .validate(.stale), context: by(.staleWhileRevalidate, window: .seconds(90))),
        Case(stored: minute, now: 1, expected: .validate(.requestNoCache), request: "Pragma: no-cache", context: by(.staleWhileRevalidate)),
        Case(stored: minute, now: 1, expected: .fresh, context: by(.cacheOnly)),
        Case(stored: minute, now: 999, expected: .cacheOnly, context: by(.cacheOnly)),
        Case(stored: minute, now: 1, expected: .fresh, request: "Cache-Control: no-cache", context: by(.cacheOnly)),
        Case(stored: minute + " | Vary: A", now: 1, expected: .gatewayTimeout(.varyMiss), request: "A: 1", context: by(.cacheOnly)),
        Case(stored: minute, now: 1, expected: .none(.bypass), context: by(.networkOnly)),
        Case(
            stored: minute, now: 1, expected: .gatewayTimeout(.bypass), request: "Cache-Control: only-if-cached",
            context: by(.networkOnly)),
    ])
    func strategies(_ given: Case) { #expect(outcome(given) == given.expected) }

    @Test(arguments: [HTTPRequest.Method.post, .put, .patch, .delete, .options])
    func otherMethodsPass(_ method: HTTPRequest.Method) {
        let candidates = [CachingFixture.stored(Self.minute)]
        let request = CachingFixture.request(method: method)
        #expect(
            Reuse.decide(
                candidates: candidates, request: request, context: ReuseContext(),
                now: CachingFixture.start) == .none(.method))
        let byBody = ReuseContext(hasBody: true, cachesByBody: true)
        #expect(Reuse.decide(candidates: [], request: request, context: byBody, now: CachingFixture.start) == .none(.uriMiss))
    }

    @Test func headIsAnsweredFromAStoredGet() {
        let freshness = Freshness(lifetime: .seconds(60), age: .zero, source: .maxAge)
        let decision = Reuse.decide(
            candidates: [CachingFixture.stored(Self.minute)], request: CachingFixture.request(method: .head), context: ReuseContext(),
            now: CachingFixture.start)
        #expect(decision == .fresh(0, freshness))
    }

    @Test func nothingStored() {
        let decide = { Reuse.decide(candidates: [], request: CachingFixture.request($0), context: $1, now: CachingFixture.start) }
        #expect(decide("", ReuseContext()) == .none(.uriMiss))
        #expect(decide("Cache-Control: only-if-cached", ReuseContext()) == .gatewayTimeout(.uriMiss))
        #expect(decide("", ReuseContext(strategy: .cacheOnly)) == .gatewayTimeout(.uriMiss))
    }

    @Test func theMostRecentMatchingVariantIsTaken() {
        let candidates = [
            CachingFixture.stored("Date: @10 | Cache-Control: max-age=60 | Vary: Accept", for: "Accept: a"),
            CachingFixture.stored("Date: @30 | Cache-Control: max-age=60 | Vary: Accept", for: "Accept: b"),
            CachingFixture.stored("Date: @20 | Cache-Control: max-age=60 | Vary: Accept", for: "Accept: a"),
        ]
        for (accept, expected) in [("a", 2), ("b", 1)] {
            let decision = Reuse.decide(
                candidates: candidates, request: CachingFixture.request("Accept: \(accept)"), context: ReuseContext(),
                now: CachingFixture.start)
            guard case .fresh(let index, _) = decision else {
                Issue.record("\(decision)")
                continue
            }
            #expect(index == expected)
        }
    }

    /// The origin may select the type by `Accept` without saying so.
    @Test(
        arguments: [
            ("Content-Type: application/json", "Accept: application/xml", false),
            ("Content-Type: application/json", "Accept: application/xml, */*;q=0.1", true),
            ("Content-Type: application/json", "Accept: text/html, application/json", true),
            ("Content-Type: application/json", "", true), ("", "Accept: application/xml", true),
            ("Content-Type: application/json | Vary: Accept", "Accept: application/xml", false),
        ])
    func aTypeThatIsNotWantedIsBetterThanNoneOnly(stored: String, asked: String, isTaken: Bool) {
        let copy = CachingFixture.stored("Cache-Control: max-age=60\(stored.isEmpty ? "" : " | ")\(stored)")
        for isReachable in [true, false] {
            let decision = Reuse.decide(
                candidates: [copy], request: CachingFixture.request(asked), context: ReuseContext(isReachable: isReachable),
                now: CachingFixture.start)
            let isFresh = if case .fresh = decision { true } else { false }
            #expect(isFresh == (isTaken || !isReachable && !stored.contains("Vary")), "\(decision)")
        }
    }

    @Test func onlyIfCachedRefreshesNothing() {
        let decision = Reuse.decide(
            candidates: [CachingFixture.stored(Self.minute + ", stale-while-revalidate=10")],
            request: CachingFixture.request("Cache-Control: only-if-cached"), context: ReuseContext(), now: CachingFixture.at(65))
        guard case .stale(0, _, .staleWhileRevalidate(refreshBehind: false)) = decision else {
            Issue.record("\(decision)")
            return
        }
    }

    @Test func everyReasonHasItsForwardValue() {
        #expect(
            NoReuse.allCases.map(\.forward) == [
                .uriMiss, .varyMiss, .partial, .method, .bypass, .bypass, .bypass, .request, .request, .request, .stale, .stale,
            ])
        #expect(Reuse.ValidationReason.allCases.map(\.forward) == [.stale, .stale, .request, .request, .request, .bypass])
    }
}
