// docs/outbox.md#floods: equal writes of one client are acknowledged twenty times within ten seconds.
import RockpoolCore
import Testing

@Suite struct AcknowledgementLimitTests {
    private let start = Timestamp(seconds: 1_000_000)

    @Test func oneMoreThanTheLimitWaitsForTheOldest() {
        var limit = AcknowledgementLimit()
        for number in 0..<AcknowledgementLimit.count {
            #expect(limit.admit([1], of: "a", now: start + .milliseconds(Int64(number) * 100)) == nil)
        }
        #expect(limit.admit([1], of: "a", now: start + .seconds(2)) == .seconds(8))
        // A refusal counts as nothing, and the window slides.
        #expect(limit.admit([1], of: "a", now: start + .seconds(10)) == nil)
        #expect(limit.admit([1], of: "a", now: start + .seconds(10)) == .milliseconds(100))
        #expect(limit.admit([1], of: "a", now: start + .milliseconds(10_100)) == nil)
    }

    @Test func otherClientsAndOtherWritesAreNotConcerned() {
        var limit = AcknowledgementLimit()
        for _ in 0..<AcknowledgementLimit.count { #expect(limit.admit([1], of: "a", now: start) == nil) }
        #expect(limit.admit([1], of: "a", now: start) != nil)
        #expect(limit.admit([1], of: "b", now: start) == nil)
        #expect(limit.admit([2], of: "a", now: start) == nil)
    }

    @Test func slowRepeatsAreNeverRefused() {
        var limit = AcknowledgementLimit()
        for second in 0..<Int64(200) { #expect(limit.admit([1], of: "a", now: start + .seconds(second)) == nil) }
    }

    @Test func manyDifferentWritesKeepTheTableSmallAndTheCountsOfTheNewest() {
        var limit = AcknowledgementLimit()
        for number in 0..<UInt32(50_000) {
            let write = [number >> 16, number >> 8, number].map { UInt8(truncatingIfNeeded: $0) }
            #expect(limit.admit(write, of: "a", now: start) == nil)
        }
        for _ in 0..<AcknowledgementLimit.count { #expect(limit.admit([1], of: "a", now: start) == nil) }
        #expect(limit.admit([1], of: "a", now: start) != nil)
    }

    @Test func aClockThatIsSetBackBeginsAnew() {
        var limit = AcknowledgementLimit()
        for _ in 0..<AcknowledgementLimit.count { #expect(limit.admit([1], of: "a", now: start) == nil) }
        #expect(limit.admit([1], of: "a", now: start - .days(1)) == nil)
    }
}
