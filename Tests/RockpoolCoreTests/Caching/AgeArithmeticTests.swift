// The terms of age and freshness shown by `explain`, equal to those used for reuse, and the decision in words (RFC 9111 §4.2.3).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct AgeArithmeticTests {
    /// The sum of the displayed terms must be equal to the age used for reuse.
    @Test(
        arguments: [
            ("", 0, 0), ("Age: 100", 5, 2), ("Date: @-40 | Age: 10", 5, 2), ("Date: @-10 | Age: 40", 5, 2), ("Age: 7, 9", 0, 0),
            ("Age: x", 1, 1),
            ("Age: 7 | Age: 100", 0, 0), ("Age: 99999999999999", 0, 0), ("Date: bad | Age: 3", 50, 1), ("Date: @40", 5, -3),
            ("Age: 9", -10, 0),
        ] as [(String, Int64, Int64)])
    func termsAddUp(_ fields: String, elapsed: Int64, delay: Int64) {
        var stored = CachingFixture.stored(fields + (fields.isEmpty ? "" : " | ") + "Cache-Control: max-age=60")
        stored.requestTime = CachingFixture.at(-delay)
        let arithmetic = AgeArithmetic(stored, now: CachingFixture.at(elapsed))
        #expect(max(arithmetic.apparentAge, arithmetic.correctedAgeValue) == arithmetic.correctedInitialAge)
        #expect(arithmetic.correctedInitialAge + arithmetic.residentTime == arithmetic.freshness.age)
        #expect(arithmetic.freshness.remaining == .seconds(60) - arithmetic.freshness.age)
    }

    @Test func everyTermIsSpelledOut() {
        var stored = CachingFixture.stored("Date: @-40 | Age: 10 | Cache-Control: max-age=60")
        stored.requestTime = CachingFixture.start - .milliseconds(2500)
        #expect(
            AgeArithmetic(stored, now: CachingFixture.at(5)).lines == [
                "apparent_age          = max(0, response_time - date_value) = 40",
                "response_delay        = response_time - request_time = 2.5",
                "corrected_age_value   = age_value + response_delay = 10 + 2.5 = 12.5",
                "corrected_initial_age = max(apparent_age, corrected_age_value) = 40", "resident_time         = now - response_time = 5",
                "current_age           = corrected_initial_age + resident_time = 45", "freshness_lifetime    = 60 (max-age)",
                "remaining             = freshness_lifetime - current_age = 15",
            ])
    }

    @Test(arguments: [(Int64(0), "0"), (-1, "-0.001"), (1500, "1.5"), (-61_050, "-61.05"), (.max, "9223372036854775.807")])
    func durationsAreSeconds(_ milliseconds: Int64, text: String) throws {
        let stored = StoredResponse(
            head: ResponseHead(status: 200), requestTime: .distantPast, responseTime: .distantPast, assignedTTL: .milliseconds(milliseconds)
        )
        let json = AgeArithmetic(stored, now: .distantPast).json
        let shown = milliseconds < 0 ? "0" : text
        #expect(json["freshnessLifetime"]?.number?.literal == shown)
        #expect(try JSONValue.parse(json.serialized()) == json)
    }
}

@Suite struct ReuseWordsTests {
    private static let offline = ReuseContext(policy: .offlineFirst, isReachable: false)

    @Test(arguments: [
        ("Cache-Control: max-age=60", "", ReuseContext(), "fresh", "nothing objects", "served from the store; nothing is sent"),
        ("Cache-Control: max-age=9 | ETag: \"a\"", "", ReuseContext(), "validate", "it is stale", "asked whether"),
        ("Cache-Control: max-age=9", "", ReuseContext(), "validate", "it is stale", "fetched anew"),
        ("Cache-Control: max-age=60", "Cache-Control: no-cache", ReuseContext(), "validate", "the request says no-cache", "fetched anew"),
        ("Cache-Control: max-age=9", "", offline, "stale", "unreachable", "although stale; nothing is sent"),
        ("Cache-Control: max-age=9, stale-while-revalidate=60", "", ReuseContext(), "stale", "RFC 5861", "refreshed behind"),
        ("Cache-Control: max-age=9", "Cache-Control: only-if-cached", ReuseContext(), "gateway-timeout", "may not be forwarded", "504"),
    ])
    func eachDecisionSaysWhyAndWhatFollows(
        _ stored: String, request: String, context: ReuseContext, word: String, reason: String, next: String
    ) {
        let decision = Reuse.decide(
            candidates: [CachingFixture.stored(stored)], request: CachingFixture.request(request), context: context,
            now: CachingFixture.at(30))
        let held = CachingFixture.stored(stored)
        #expect(decision.word == word)
        #expect(decision.why(of: held).contains(reason) && decision.next(of: held).contains(next))
    }

    /// One state has one reason, and a copy with a validator is not said to have none.
    @Test(arguments: [
        ("Cache-Control: no-cache | ETag: \"a\"", false, false, "the response says no-cache", "holds, with If-None-Match"),
        ("Cache-Control: max-age=60 | ETag: \"a\"", true, false, "an unsafe request has invalidated it", "holds, with If-None-Match"),
        ("Cache-Control: max-age=60", true, false, "an unsafe request has invalidated it", "anew: it has no validator to ask with"),
        ("Cache-Control: no-cache | ETag: \"a\"", true, true, "an own write has changed", "may not cover what a write has changed"),
    ])
    func oneStateHasOneReason(_ stored: String, isInvalidated: Bool, isOwnWrites: Bool, why: String, next: String) {
        var held = CachingFixture.stored(stored)
        held.isInvalidated = isInvalidated
        if isOwnWrites { held.ownWrite = OwnWriteMark(at: Tick(number: 9), isIncluded: true) }
        let decision = Reuse.decide(
            candidates: [held], request: CachingFixture.request(""), context: ReuseContext(), now: CachingFixture.at(10))
        #expect(decision.why(of: held).hasPrefix(why) && decision.next(of: held).hasSuffix(next), "\(decision.why(of: held))")
        #expect(isOwnWrites || !isInvalidated || decision.why(of: held, doubt: "of nobody") == "of nobody")
    }
}
