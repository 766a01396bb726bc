// Lanes and the order between them (outbox.md §1.8, §2.6; properties P4 and P7).
import RockpoolCore
import Testing

@Suite struct ReplayOrderTests {
    static func summary(
        _ sequence: Int64, _ lane: String, _ state: OperationState = .pending, priority: Int = 0, due: Timestamp = noon,
        accepted: Timestamp = noon, needs: Set<Int64> = []
    ) -> OperationSummary {
        OperationSummary(
            sequence: sequence, id: "\(sequence)", state: state, lane: lane, upstream: "notes", priority: priority, acceptedAt: accepted,
            nextAttemptAt: due, needs: needs)
    }

    @Test(arguments: OperationState.allCases) func aLaneIsHeldByWhatHasNotEnded(_ state: OperationState) {
        let open = [Self.summary(2, "a"), Self.summary(1, "a", state), Self.summary(3, "b")]
        let expected: [String] = state == .pending ? ["1", "3"] : state.hasEnded ? ["2", "3"] : ["3"]
        #expect(ReplayOrder.ready(open, now: noon) == expected)
    }

    @Test func oneOfEachLaneInOrderOfAcceptance() {
        let open = (1...9).reversed().map { Self.summary(Int64($0), "lane\($0 % 3)") }
        #expect(ReplayOrder.ready(open, now: noon) == ["1", "2", "3"])
    }

    @Test func aHeadThatIsNotDueHoldsItsLane() {
        let open = [Self.summary(1, "a", due: noon + .seconds(5)), Self.summary(2, "a"), Self.summary(3, "b", due: noon + .seconds(9))]
        #expect(ReplayOrder.ready(open, now: noon) == [])
        #expect(ReplayOrder.nextDue(open) == noon + .seconds(5))
        #expect(ReplayOrder.ready(open, now: noon + .seconds(5)) == ["1"])
        #expect(ReplayOrder.nextDue([Self.summary(1, "a", .dead)]) == nil)
    }

    @Test func priorityOrdersBetweenLanesOnly() {
        let open = [Self.summary(1, "a", priority: 5), Self.summary(2, "a", priority: -100), Self.summary(3, "b", priority: -1)]
        #expect(ReplayOrder.ready(open, now: noon) == ["3", "1"])
    }

    @Test func whatWaitsLongGoesFirstInTheEnd() {
        let old = Self.summary(1, "a", priority: 100, accepted: noon - .minutes(20))
        #expect(ReplayOrder.ready([Self.summary(2, "b", priority: -100), old], now: noon) == ["1", "2"])
    }

    @Test func needsHoldAcrossLanes() {
        let open = [Self.summary(1, "a", .dead), Self.summary(2, "b", needs: [1]), Self.summary(3, "c", needs: [0])]
        #expect(ReplayOrder.ready(open, now: noon) == ["3"])
        #expect(ReplayOrder.blocker(of: open[1], among: open)?.id == "1")
        #expect(ReplayOrder.blocker(of: open[2], among: open) == nil)
    }

    @Test func theSameLaneNameAtAnotherUpstreamIsAnotherLane() {
        var other = Self.summary(2, "a")
        other.upstream = "other"
        #expect(ReplayOrder.ready([Self.summary(1, "a", .dead), other], now: noon) == ["2"])
    }

    @Test(arguments: [
        (LaneOrder.entity, String?.some("/v1/notes/1"), String?.none, "notes /v1/notes/1"), (.entity, nil, nil, "notes *"),
        (.entity, nil, "anna", "notes * anna"), (.global, "/v1/notes/1", "anna", "notes"),
    ])
    func laneNames(_ order: LaneOrder, _ entity: String?, _ principal: String?, _ name: String) {
        #expect(Lane.name(upstream: "notes", entity: entity, order: order, principal: principal) == name)
    }
}
