// A stuck write of one principal does not block other principals: the order within a lane, for every order of arrival
// (docs/outbox.md#principals; SECURITY.md).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct PrincipalOrderTests {
    /// The responses of an upstream to a principal that may not write.
    private static let refusals: [AttemptOutcome] =
        [400, 401, 403, 404, 405, 409, 410, 412, 413, 415, 419, 422, 428].map { answer($0) }
        + [answer(302, [.location: "/login"]), answer(301, [.location: "https://elsewhere.example/"])]

    @Test(arguments: [(OperationState.parked, OperationReason?.some(.auth)), (.conflicted, nil)])
    func whatWaitsForAPersonHoldsItsOwnAlone(_ state: OperationState, _ reason: OperationReason?) {
        var replay = ReplayMachineTests.wide()
        _ = replay.accept(summary(1, state, reason: reason, principal: "eve"))
        #expect(replay.accept(summary(2, principal: "eve")) == [])
        #expect(replay.accept(summary(3, principal: "ada")) == sent(3))
        // Once it can be sent again, the order is that of acceptance.
        _ = replay.answered(summary(3, principal: "ada"))
        #expect(replay.accept(summary(1, principal: "eve")) == sent(1))
        #expect(replay.accept(summary(4, principal: "ada")) == [])
        #expect(replay.answered(summary(1, principal: "eve")) == sent(2))
        #expect(replay.answered(summary(2, principal: "eve")) == sent(4))
    }

    @Test func whatCanBeSentKeepsItsOrder() {
        var replay = ReplayMachineTests.wide()
        #expect(replay.accept(summary(1, principal: "eve"), summary(2, principal: "ada"), summary(3)) == sent(1))
        #expect(replay.answered(summary(1, principal: "eve")) == sent(2))
        #expect(replay.answered(summary(2, principal: "ada")) == sent(3))
    }

    /// An operation behind one in conflict of its own principal cannot be sent, so it blocks no other principal.
    @Test func whatStandsBehindItsOwnHoldsNobody() {
        var replay = ReplayMachineTests.wide()
        _ = replay.accept(summary(1, .conflicted, principal: "eve"), summary(2, principal: "eve"))
        #expect(replay.accept(summary(3, principal: "ada")) == sent(3))
    }

    @Test func whatNeedsAStuckOneHoldsNoOtherPrincipal() {
        var replay = ReplayMachineTests.wide()
        _ = replay.accept(summary(1, .dead, lane: "b", principal: "eve"))
        #expect(replay.accept(summary(2, principal: "eve", needs: [1]), summary(3, principal: "ada")) == sent(3))
        // Once its dependency is being sent, it keeps its place.
        _ = replay.answered(summary(3, principal: "ada"))
        #expect(replay.accept(summary(1, lane: "b", principal: "eve")) == sent(1))
        #expect(replay.accept(summary(4, principal: "ada")) == [])
        #expect(replay.answered(summary(1, lane: "b", principal: "eve")) == sent(2))
    }

    @Test func nobodyUnprovedHoldsOneWhoIsProved() {
        var replay = ReplayMachineTests.wide()
        #expect(replay.accept(summary(1), summary(2, principal: "eve"), summary(3, principal: "ada")) == sent(1))
        #expect(replay.step(.proved(principal: "ada")) == sent(3))
        // An operation of a proved principal blocks everything behind it.
        #expect(replay.accept(summary(4)) == [])
        #expect(replay.answered(summary(1)) == sent(2))
        #expect(replay.answered(summary(2, principal: "eve")) == [])
        #expect(replay.answered(summary(3, principal: "ada")) == sent(4))
    }

    @Test func anAttemptOfSomebodyUnprovedHoldsNobodyWhoIsProved() {
        var replay = ReplayMachineTests.wide()
        _ = replay.step(.proved(principal: "ada"))
        _ = replay.step(.held(upstream: "notes", lane: "a", principal: nil, until: noon + .seconds(20)))
        #expect(replay.accept(summary(1), summary(2, principal: "ada")) == sent(2))
        _ = replay.step(.held(upstream: "notes", lane: "b", principal: "ada", until: noon + .seconds(20)))
        #expect(replay.accept(summary(3, lane: "b"), summary(4, lane: "b", principal: "ada")) == [])
    }

    /// After a redirect to a login page, a write without a principal is retried later, and blocks no other operation.
    @Test func whatIsParkedForAWhileIsTriedAgain() {
        var replay = ReplayMachineTests.wide()
        let parked = summary(1, .parked, reason: .auth, due: noon + .seconds(12))
        #expect(replay.accept(parked, summary(2, principal: "ada")) == sent(2))
        #expect(replay.later(.seconds(11)) == [])
        let moved = replay.later(.seconds(1))
        #expect(replay.settle(moved, of: parked) == sent(1))
    }

    /// Two principals, one of them refused in every possible way: the other's writes are all delivered within five seconds, in order.
    @Test(arguments: 0..<300 as Range<UInt64>) func theOthersWritesAreDelivered(_ seed: UInt64) {
        var random = SimulationRandom(seed: seed)
        let isProved = Bool.random(using: &random)
        var replay = ReplayMachineTests.wide()
        if isProved { _ = replay.step(.proved(principal: "ada")) }
        var arriving = (1...8).map { place in
            let name = [String?.none, "eve", "mallory", "ada", "ada"].randomElement(using: &random) ?? nil
            return summary(Int64(place), method: [.put, .post, .patch].randomElement(using: &random) ?? .put, principal: name)
        }[...]
        let known = Dictionary(uniqueKeysWithValues: arriving.map { ($0.sequence, $0) })
        var underWay: [Int64] = []
        var delivered: [Int64] = []
        var steps = 0
        while replay.now < noon + .seconds(5), steps < 1000 {
            steps += 1
            var actions: [ReplayMachine.Action] = []
            switch Int.random(in: 0..<3, using: &random) {
            case 0: actions = arriving.popFirst().map { replay.step(.changed($0)) } ?? []
            case 1 where !underWay.isEmpty:
                let sequence = underWay.remove(at: Int.random(in: 0..<underWay.count, using: &random))
                guard let one = known[sequence] else { continue }
                if one.principal == "ada" { delivered.append(sequence) }
                actions = replay.answered(
                    one, one.principal == "ada" ? answer(200) : Self.refusals.randomElement(using: &random) ?? answer(403))
            default: actions = replay.later(.milliseconds(arriving.isEmpty && underWay.isEmpty ? 50 : 1))
            }
            for action in actions { if case .send(_, let sequence) = action { underWay.append(sequence) } }
        }
        let mine = known.values.filter { $0.principal == "ada" }.map(\.sequence).sorted()
        #expect(delivered == mine, "seed \(seed): expected \(mine), delivered \(delivered)")
    }
}
