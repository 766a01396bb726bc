// The turns of several parent proxies, and the failures after which another one is tried.
import RockpoolCore
import Testing

@Suite struct ParentTurnsTests {
    private static func settings(_ weights: [Int], choose: ParentSettings.Choice) -> ParentSettings {
        let all = weights.enumerated().map { index, weight in
            var one = ParentSettings(url: "http://\(index):1")
            one.weight = weight
            return one
        }
        var first = all[0]
        (first.others, first.choose) = (Array(all.dropFirst()), choose)
        return first
    }

    /// The numbers of the parents in the order in which requests try them first, or all of one request.
    private func names(_ parents: [ParentSettings]) -> String { parents.map { String($0.url.dropFirst(7).prefix(1)) }.joined() }

    @Test func inOrderTheFirstThatIsUpIsTaken() {
        var turns = ParentTurns()
        let settings = Self.settings([1, 1, 1], choose: .order)
        for down in ["", "0", "1", "01", "012"] {
            let order = names(turns.next(of: settings) { url in !down.contains { "http://\($0):1" == url } })
            #expect(order == "012".filter { !down.contains($0) } + down)
        }
    }

    @Test(arguments: [([2, 1], 6, "010010"), ([1, 1], 4, "0101"), ([5, 1, 1], 7, "0010200"), ([1], 3, "000")])
    func byWeightTheTurnsAreSpread(weights: [Int], count: Int, expected: String) {
        var turns = ParentTurns()
        let settings = Self.settings(weights, choose: .weight)
        let firsts = (0..<count).map { _ in names(turns.next(of: settings) { _ in true }).prefix(1) }
        #expect(firsts.joined() == expected)
    }

    @Test func whatIsDownHasNoTurnAndIsTriedLast() {
        var turns = ParentTurns()
        let settings = Self.settings([9, 1, 1], choose: .weight)
        for _ in 0..<4 {
            let order = names(turns.next(of: settings) { $0 != "http://0:1" })
            #expect(order.hasSuffix("0") && order.count == 3)
        }
    }

    @Test(arguments: [
        (ParentSettings.Choice.order, "", "0"), (.order, "0", "1"), (.order, "01", "2"), (.order, "012", "012"), (.weight, "", "012"),
        (.weight, "1", "02"), (.weight, "012", "012"),
    ])
    func theStandingNamesWhatIsUsed(choose: ParentSettings.Choice, down: String, used: String) {
        var health = ParentHealth()
        for number in down { _ = health.fail("http://\(number):1", now: Timestamp(seconds: 7)) }
        let standings = ParentStanding.all(of: "*", Self.settings([1, 1, 1], choose: choose), health: health)
        #expect(standings.filter(\.isUsed).map { String($0.url.dropFirst(7).prefix(1)) }.joined() == used)
        #expect(standings.filter { $0.downSince == Timestamp(seconds: 7) }.count == down.count && standings.allSatisfy { $0.of == "*" })
    }

    @Test(arguments: [
        (TransferFailure.Kind.refused, TransferFailure.Sent.no, true, true), (.connectTimeout, .no, true, true), (.dns, .no, false, true),
        (.reset, .no, false, true), (.reset, .maybe, false, false), (.refused, .maybe, false, false), (.tls, .no, false, false),
        (.denied, .no, false, false), (.cancelled, .no, false, false), (.firstByteTimeout, .yes, false, false),
    ])
    func onlyWhatWasNotSentIsTriedAgain(
        kind: TransferFailure.Kind, sent: TransferFailure.Sent, isOfParent: Bool, mayTakeAnother: Bool
    ) {
        let failure = TransferFailure(kind: kind, sent: sent)
        #expect(failure.isOfParent == isOfParent && failure.mayTakeAnotherParent == mayTakeAnother)
    }
}
