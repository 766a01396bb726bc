// Reuse and expiry of the cached TLS context of a host.
import RockpoolCore
import Testing

@testable import RockpoolNetwork

@Suite struct LeafCacheTests {
    private let start = Timestamp(seconds: 1_767_225_600)

    @Test(arguments: [(TimeSpan.zero, true), (.days(3) - .milliseconds(1), true), (.days(3), false), (.zero - .milliseconds(1), false)])
    func aContextServesForHalfItsLife(after span: TimeSpan, serves: Bool) {
        var cache = LeafCache<Int, String>(limit: 2, freshness: .days(3))
        cache.keep("one", for: "a.test", by: 1, now: start)
        #expect((cache.context(for: "a.test", by: 1, now: start + span) != nil) == serves)
    }

    @Test func anotherAuthorityForgetsThemAll() {
        var cache = LeafCache<Int, String>(limit: 2, freshness: .days(3))
        cache.keep("one", for: "a.test", by: 1, now: start)
        #expect(cache.context(for: "a.test", by: 2, now: start) == nil)
        cache.keep("two", for: "b.test", by: 2, now: start)
        #expect(cache.count == 1 && cache.context(for: "b.test", by: 2, now: start) == "two")
    }

    @Test func atTheLimitTheOneUnusedForLongestGoes() {
        var cache = LeafCache<Int, String>(limit: 2, freshness: .days(3))
        for name in ["a", "b"] { cache.keep(name, for: name, by: 1, now: start) }
        #expect(cache.context(for: "a", by: 1, now: start) == "a")
        cache.keep("b again", for: "b", by: 1, now: start)
        #expect(cache.count == 2)
        _ = cache.context(for: "a", by: 1, now: start)
        cache.keep("c", for: "c", by: 1, now: start)
        #expect(cache.count == 2 && cache.context(for: "b", by: 1, now: start) == nil && cache.context(for: "a", by: 1, now: start) == "a")
    }
}
