// Waiting times of operations: back-off and `Retry-After` (docs/outbox.md#backoff; RFC 9110 §10.2.3).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct WaitingTests {
    @Test(
        arguments: [
            (0, 500), (1, 1000), (2, 2000), (6, 32_000), (7, 60_000), (40, 60_000),
            (Int.max, 60_000), (-3, 500),
        ] as [(Int, Int64)])
    func fullJitterReachesFromZeroToItsCeiling(_ attempt: Int, _ ceiling: Int64) {
        #expect(Backoff.fullJitter(attempt: attempt, random: 0) == .zero)
        #expect(Backoff.fullJitter(attempt: attempt, random: 1).milliseconds == ceiling)
        #expect(Backoff.fullJitter(attempt: attempt, random: 0.5).milliseconds == ceiling / 2)
    }

    @Test func throttlingHasAFloor() {
        #expect(Backoff.throttled(until: nil, attempt: 0, now: noon, random: 0) == noon + .seconds(1))
        #expect(Backoff.throttled(until: nil, attempt: 99, now: noon, random: 1) == noon + .seconds(9))
        #expect(Backoff.throttled(until: noon + .days(900), attempt: 0, now: noon, random: 0) == noon + .hours(24))
        #expect(Backoff.throttled(until: noon - .days(1), attempt: 0, now: noon, random: 0) == noon)
    }

    @Test(arguments: [
        ("120", Timestamp?.some(noon + .seconds(120))), ("0", noon), ("Fri, 15 Jan 2027 08:01:00 GMT", noon + .seconds(60)),
        ("Fri, 15 Jan 1999 08:01:00 GMT", noon), ("99999999999999999999999", .distantFuture), ("", nil), ("-5", nil), ("soon", nil),
        ("1.5", nil),
    ])
    func retryAfter(_ value: String, _ moment: Timestamp?) {
        #expect(RetryAfter.parse([.retryAfter: value], now: noon) == moment)
    }

    @Test func withoutTheField() { #expect(RetryAfter.parse([:], now: noon) == nil) }
}
