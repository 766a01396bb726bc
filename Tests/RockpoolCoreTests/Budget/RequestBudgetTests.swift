// Budgets of requests, announcements of upstreams, hours (docs/caching.md#budgets).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct RequestBudgetTests {
    private let ann = BudgetClient([.authorization: "Bearer a"])
    private let start = Timestamp(milliseconds: 1_700_000_000_000)

    @Test func theBucketFillsEvenlyAndTheReservesHold() {
        var budget = RequestBudget(RateLimitRule(requests: 10, per: .seconds(10)), now: start)
        for purpose in RequestPurpose.allCases { #expect(budget.wait(for: purpose, of: ann, now: start) == nil) }
        for _ in 0..<5 { budget.spend(of: ann, now: start) }
        // Five are left: pulls and prefetches leave half to others.
        #expect(budget.wait(for: .prefetch, of: ann, now: start) == start + .milliseconds(1001))
        #expect(budget.wait(for: .refresh, of: ann, now: start) == nil && budget.wait(for: .replay, of: ann, now: start) == nil)
        for _ in 0..<5 { budget.spend(of: ann, now: start) }
        #expect(budget.wait(for: .replay, of: ann, now: start) == start + .milliseconds(1001))
        #expect(budget.wait(for: .refresh, of: ann, now: start) == start + .milliseconds(3001))
        #expect(budget.wait(for: .replay, of: ann, now: start + .milliseconds(1001)) == nil)
        // Clients overdraw one period at most.
        for _ in 0..<100 { budget.spend(of: ann, now: start + .seconds(1)) }
        #expect(budget.wait(for: .live, of: ann, now: start + .seconds(1)) == start + .milliseconds(12_001))
        #expect(budget.wait(for: .prefetch, of: ann, now: start + .seconds(30)) == nil)
        // A clock that was set back fills nothing, and breaks nothing.
        for _ in 0..<10 { budget.spend(of: ann, now: start + .seconds(30)) }
        #expect(budget.wait(for: .replay, of: ann, now: start) != nil)
    }

    @Test func aBudgetOfOneLetsEveryPurposeThrough() {
        let budget = RequestBudget(RateLimitRule(requests: 1, per: .hours(1)), now: start)
        for purpose in RequestPurpose.allCases { #expect(budget.wait(for: purpose, of: ann, now: start) == nil) }
    }

    @Test func whatTheUpstreamAnnouncesCounts() {
        var budget = RequestBudget(RateLimitRule(), now: start)
        #expect(budget.wait(for: .prefetch, of: ann, now: start) == nil)
        budget.learn(from: [.rateLimit: #""default";r=99;t=20"#], status: 200, of: ann, now: start)
        #expect(budget.wait(for: .prefetch, of: ann, now: start) == nil)
        budget.learn(from: [.rateLimit: #""default";r=40;t=20"#], status: 200, of: ann, now: start)
        #expect(
            budget.wait(for: .prefetch, of: ann, now: start) == start + .seconds(20)
                && budget.wait(for: .refresh, of: ann, now: start) == nil)
        budget.learn(from: [.rateLimit: #""default";r=1;t=10"#], status: 200, of: ann, now: start)
        #expect(budget.wait(for: .replay, of: ann, now: start) == nil)
        budget.spend(of: ann, now: start)
        #expect(budget.wait(for: .live, of: ann, now: start) == start + .seconds(10))
        #expect(budget.wait(for: .prefetch, of: ann, now: start + .seconds(10)) == nil)
        budget.learn(from: [.retryAfter: "7"], status: 200, of: ann, now: start + .seconds(20))
        #expect(budget.wait(for: .replay, of: ann, now: start + .seconds(20)) == nil)
        budget.learn(from: [.retryAfter: "7"], status: 429, of: ann, now: start + .seconds(20))
        #expect(budget.wait(for: .replay, of: ann, now: start + .seconds(20)) == start + .seconds(27))
        budget.learn(from: [.retryAfter: "99999999"], status: 503, of: ann, now: start)
        #expect(budget.wait(for: .live, of: ann, now: start).map { $0 <= start + .hours(24) } == true)
    }

    /// Whoever is answered 429, or has spent what is his, holds nobody else back.
    @Test func whatOneClientIsToldHoldsForNoOther() {
        var budget = RequestBudget(RateLimitRule(requests: 10, per: .seconds(10)), now: start)
        let others: [HTTPFields] = [[.authorization: "Bearer b"], [.cookie: "a=b"], [:]]
        budget.learn(from: [.retryAfter: "60"], status: 429, of: ann, now: start)
        budget.learn(from: [.rateLimit: #""default";r=0;t=20"#], status: 200, of: ann, now: start)
        for other in others { #expect(budget.wait(for: .replay, of: BudgetClient(other), now: start) == nil) }
        #expect(budget.wait(for: .live, of: ann, now: start) == start + .seconds(60))
        #expect(budget.wait(for: .prefetch, of: nil, now: start) == start + .seconds(60), "nobody waits for it")
        for number in 0..<300 {
            budget.learn(from: [.retryAfter: "9"], status: 429, of: BudgetClient([.cookie: "a=\(number)"]), now: start)
        }
        #expect(budget.wait(for: .live, of: ann, now: start) == nil, "the last 256 are known")
        for _ in 0..<10 { budget.spend(of: ann, now: start) }
        for other in others { #expect(budget.wait(for: .replay, of: BudgetClient(other), now: start) != nil, "the bucket is for all") }
    }

    @Test(arguments: [
        (#""default";r=50;t=30"#, 50, 30), (#""a";r=50;t=30, "b";r=2;t=100"#, 2, 100), ("limit=100, remaining=4, reset=9", 4, 9),
        ("limit=100,remaining=4,reset=9", 4, 9), (#""d"; r=0 ; t=999999"#, 0, 86_400),
    ]) func theFieldHasTwoForms(value: String, remaining: Int, reset: Int64) throws {
        let found = try #require(RateLimitFields([.rateLimit: value], now: start))
        #expect(found.remaining == remaining && found.resetAt == start + .seconds(reset))
    }

    @Test func olderFieldsAndNonsense() {
        let older = RateLimitFields([.rateLimitRemaining: "3", .rateLimitReset: "4"], now: start)
        #expect(older?.remaining == 3 && older?.resetAt == start + .seconds(4))
        let unix = RateLimitFields([.xRateLimitRemaining: "0", .xRateLimitReset: "\(start.milliseconds / 1000 + 60)"], now: start)
        #expect(unix?.remaining == 0 && unix?.resetAt == start + .seconds(60))
        let wrong: [HTTPFields] = [
            [:], [.rateLimit: "r=5"], [.rateLimit: "x"], [.rateLimit: #""d";r=-1;t=5"#], [.rateLimit: #""d";r=1;t=-5"#],
            [.xRateLimitRemaining: "5"], [.rateLimitRemaining: "many", .rateLimitReset: "5"],
            [.rateLimit: #""d";r=99999999999999999999;t=1"#],
        ]
        for fields in wrong { #expect(RateLimitFields(fields, now: start) == nil, "\(fields)") }
    }

    @Test func hoursMayContainMidnight() throws {
        let night = try #require(DayHours("23:30-06:00")), noon = try #require(DayHours("11:00-13:00"))
        #expect(night.contains(minute: 23 * 60 + 30) && night.contains(minute: 0) && !night.contains(minute: 360))
        #expect(!noon.contains(minute: 659) && noon.contains(minute: 660) && !noon.contains(minute: 780))
        #expect(DayHours("18:00-24:00")?.contains(minute: 1439) == true)
        #expect("\(night)" == "23:30-06:00")
        for wrong in ["", "1:00-2:00", "01:00", "25:00-02:00", "01:60-02:00", "01:00-01:00", "24:00-01:00", "01:00-02:00-03:00"] {
            #expect(DayHours(wrong) == nil, "\(wrong)")
        }
    }
}
