// Suspicious responses are accepted only after repeated successful probes.
import RockpoolCore
import Testing

@Suite struct DoubtsTests {
    private static let oddity = Doubts.Oddity(upstream: "notes", url: "/a", sign: "a page")

    /// Returns for each of these seconds whether the response is doubted, with a successful probe after each.
    private func doubted(_ seconds: [Int64], hasExpectation: Bool = true, wasUnmetLately: Bool = false, isMet: Bool = true) -> [Bool] {
        var doubts = Doubts()
        return seconds.map { second in
            defer { doubts.settle("notes", isMet: isMet) }
            return doubts.stands(
                Self.oddity, hasExpectation: hasExpectation, wasUnmetLately: wasUnmetLately, now: Timestamp(seconds: 1_000_000 + second))
        }
    }

    @Test func anOddityThatProbesOutliveIsTheUpstreamsOwn() {
        #expect(doubted([0, 1, 2, 3]) == [true, true, false, false])
        #expect(doubted([0, 1, 2, 3], isMet: false) == [true, true, true, true])
        #expect(doubted([0, 1, 2, 3], wasUnmetLately: true) == [true, true, true, true])
        #expect(doubted([0, 1, 602, 603]) == [true, true, true, true])
    }

    /// Without an expectation any response satisfies a probe, so only elapsed time decides.
    @Test func withoutAnExpectationTimeTells() {
        #expect(doubted([0, 1, 2, 300, 599, 600], hasExpectation: false) == [true, true, true, true, true, false])
    }

    @Test func eachURLAndSignIsJudgedByItself() {
        var doubts = Doubts()
        for second in 0..<3 as Range<Int64> {
            _ = doubts.stands(Self.oddity, hasExpectation: true, wasUnmetLately: false, now: Timestamp(seconds: second))
            doubts.settle("notes", isMet: true)
        }
        for (url, sign) in [("/b", "a page"), ("/a", "a redirect")] {
            let other = Doubts.Oddity(upstream: "notes", url: url, sign: sign)
            let stands = doubts.stands(other, hasExpectation: true, wasUnmetLately: false, now: Timestamp(seconds: 3))
            #expect(stands)
        }
    }

    @Test func noMoreThanTheLimitAreRemembered() {
        var doubts = Doubts()
        for number in 0...Doubts.limit {
            let oddity = Doubts.Oddity(upstream: "notes", url: "/\(number)", sign: "a page")
            let stands = doubts.stands(oddity, hasExpectation: true, wasUnmetLately: false, now: Timestamp(seconds: Int64(number)))
            #expect(stands)
        }
        #expect(doubts.count == Doubts.limit)
    }
}
