// Responses with a portal's sign: their doubt concerns one URL, and ends soon if the upstream is the one that answers.
import RockpoolCore
import Testing

@Suite struct DoubtsTests {
    private static let place = Doubts.Place(upstream: "notes", url: "/a", manner: "*/*")
    private static let sighting = Doubts.Sighting(sign: "200 a page")

    private static func at(_ seconds: Double) -> Timestamp { Timestamp(milliseconds: 1_000_000_000 + Int64(seconds * 1000)) }

    private static func noted(
        _ doubts: inout Doubts, url: String = "/a", manner: String = "*/*", _ sighting: Doubts.Sighting = sighting,
        expects: Bool = false, at seconds: Double
    ) -> Doubts.Verdict {
        let place = Doubts.Place(upstream: "notes", url: url, manner: manner)
        return doubts.note(sighting, at: place, hasExpectation: expects, now: at(seconds))
    }

    /// The verdict on equal answers at these seconds, with a probe after each.
    private func verdicts(
        _ seconds: [Double], expects: Bool = false, isNew: Bool = false, probe isMet: Bool? = true
    ) -> [Doubts.Verdict] {
        var doubts = Doubts()
        let sighting = Doubts.Sighting(sign: "200 a page", hasNewValidator: isNew)
        return seconds.map { second in
            defer { if let isMet { doubts.settle("notes", isMet: isMet, now: Self.at(second)) } }
            return Self.noted(&doubts, sighting, expects: expects, at: second)
        }
    }

    @Test func theThirdEqualAnswerOverFiveSecondsIsBelieved() {
        #expect(verdicts([0, 2.5, 5, 6]) == [.doubted, .doubted, .believed, .believed])
        #expect(verdicts([0, 1, 2, 3, 4, 5]) == [.doubted, .doubted, .doubted, .doubted, .doubted, .believed])
        #expect(verdicts([0, 60]) == [.doubted, .doubted])
        #expect(verdicts([0, 900, 1800]) == [.doubted, .doubted, .believed], "also if its client reads rarely")
        #expect(verdicts([0, 2.5, 5], probe: nil) == [.doubted, .doubted, .believed])
    }

    @Test func anotherAnswerIsNotEqual() {
        var doubts = Doubts()
        #expect(Self.noted(&doubts, at: 0) == .doubted)
        #expect(Self.noted(&doubts, .init(sign: "302 to h"), at: 3) == .doubted)
        #expect(Self.noted(&doubts, at: 6) == .doubted)
        #expect(Self.noted(&doubts, at: 9) == .doubted)
        #expect(Self.noted(&doubts, at: 12) == .believed)
    }

    @Test func aNewValidatorIsBelievedOnceAProbeFoundNoPortal() {
        #expect(verdicts([0, 1], isNew: true) == [.doubted, .believed])
        #expect(verdicts([0, 1], isNew: true, probe: nil) == [.doubted, .doubted])
        #expect(verdicts([0, 1, 2, 30], isNew: true, probe: false) == [.doubted, .doubted, .doubted, .doubted])
    }

    @Test func withAnExpectationAMetProbeIsTheProof() {
        #expect(verdicts([0, 1], expects: true) == [.doubted, .believed])
        #expect(verdicts([0, 3, 6, 600], expects: true, probe: nil) == [.doubted, .doubted, .doubted, .doubted])
        #expect(verdicts([0, 3, 6, 600], expects: true, probe: false) == [.doubted, .doubted, .doubted, .doubted])
    }

    @Test func nothingIsBelievedWithinAMinuteOfAProbeThatWasNotMet() {
        var doubts = Doubts()
        doubts.settle("notes", isMet: false, now: Self.at(0))
        for second in stride(from: 1.0, to: 60, by: 10) { #expect(Self.noted(&doubts, at: second) == .doubted) }
        #expect(Self.noted(&doubts, at: 61) == .believed)
    }

    @Test func anAnswerWithoutASignEndsTheDoubtAndTheBelief() {
        var doubts = Doubts()
        for second in [0.0, 3, 6] { _ = Self.noted(&doubts, at: second) }
        #expect(Self.noted(&doubts, at: 7) == .believed)
        doubts.end(at: Self.place)
        #expect(Self.noted(&doubts, at: 8) == .doubted)
        #expect(Self.noted(&doubts, at: 20) == .doubted)
    }

    @Test func eachMannerIsJudgedByItself() {
        var doubts = Doubts()
        for second in [0.0, 3, 6] { _ = Self.noted(&doubts, at: second) }
        #expect(Self.noted(&doubts, manner: "application/json", at: 7) == .doubted)
        doubts.end(at: Doubts.Place(upstream: "notes", url: "/a", manner: "application/json"))
        #expect(Self.noted(&doubts, at: 8) == .believed)
    }

    // MARK: a second URL

    @Test func aSecondURLConcernsTheUpstream() {
        var doubts = Doubts()
        #expect(Self.noted(&doubts, at: 0) == .doubted)
        #expect(Self.noted(&doubts, manner: "a/b", at: 0) == .doubted, "the same URL is no second one")
        #expect(Self.noted(&doubts, url: "/b", at: 1) == .spread)
        #expect(Self.noted(&doubts, at: 2) == .spread)
        let other = doubts.note(
            Self.sighting, at: .init(upstream: "others", url: "/c"), hasExpectation: false, now: Self.at(2))
        #expect(other == .doubted)
        #expect(Self.noted(&doubts, url: "/d", at: 700) == .doubted, "the others are long past")
    }

    /// Repetition is no proof where everything shows a sign: a portal repeats itself too.
    @Test func whatHasSpreadIsBelievedAfterTenMinutesOnly() {
        var doubts = Doubts()
        for second in stride(from: 0.0, to: 600, by: 10) {
            for url in ["/a", "/b"] {
                #expect(Self.noted(&doubts, url: url, at: second) != .believed)
                doubts.settle("notes", isMet: true, now: Self.at(second))
            }
        }
        #expect(Self.noted(&doubts, at: 600) == .believed)
    }

    @Test func anUpstreamThatIsHeardIsNotDoubted() {
        var doubts = Doubts()
        #expect(Self.noted(&doubts, at: 0) == .doubted)
        doubts.hear("notes", now: Self.at(4))
        #expect(Self.noted(&doubts, url: "/b", at: 4.5) == .doubted)
        #expect(Self.noted(&doubts, at: 4.9) == .doubted, "it was heard a moment ago")
        #expect(Self.noted(&doubts, at: 5.1) == .spread)
        doubts.hear("notes", now: Self.at(6))
        #expect(Self.noted(&doubts, at: 8) == .believed, "no other sign has come since it was heard")
    }

    @Test func threeURLsConcernAnUpstreamThatWasHeardAMomentAgo() {
        var doubts = Doubts()
        doubts.hear("notes", now: Self.at(0))
        #expect(Self.noted(&doubts, url: "/a", at: 0.1) == .doubted)
        #expect(Self.noted(&doubts, url: "/b", at: 0.2) == .doubted)
        #expect(Self.noted(&doubts, url: "/c", at: 0.3) == .spread)
        doubts.hear("notes", now: Self.at(0.4))
        #expect(Self.noted(&doubts, url: "/a", at: 0.5) == .doubted)
        #expect(Self.noted(&doubts, url: "/b", at: 0.6) == .doubted)
    }

    @Test func aSignWithoutEvidenceConcernsNoUpstream() {
        var doubts = Doubts()
        let weak = Doubts.Sighting(sign: "200 a page", isEvidence: false)
        for url in ["/a", "/b", "/c"] { #expect(Self.noted(&doubts, url: url, weak, at: 0) == .doubted) }
        #expect(Self.noted(&doubts, url: "/d", at: 1) == .doubted)
    }

    @Test func aClockSetBackStartsAnew() {
        var doubts = Doubts()
        for second in [0.0, 3] { _ = Self.noted(&doubts, at: second) }
        #expect(Self.noted(&doubts, at: -50) == .doubted)
        #expect(Self.noted(&doubts, at: -40) == .doubted)
        #expect(Self.noted(&doubts, at: -30) == .believed)
    }

    @Test func noMoreThanTheLimitAreRemembered() {
        var doubts = Doubts()
        for number in 0...Doubts.limit { _ = Self.noted(&doubts, url: "/\(number)", at: Double(number)) }
        #expect(doubts.count == Doubts.limit)
    }
}
