// Lanes, the order between them, and the limits of an upstream's gate (docs/outbox.md#lanes, docs/outbox.md#lane-holds–2.6; properties P4
// and P7).
import HTTPTypes
import RockpoolCore
import Synchronization
import Testing

/// A machine with a clock; every step is taken at `now`, with the random value 0.5.
struct Replay {
    var machine: ReplayMachine
    var now = noon

    init(_ contexts: [String: ReplayContext] = ["notes": context()], isReachable: Bool = true) {
        machine = ReplayMachine(contexts: contexts)
        guard isReachable else { return }
        for upstream in contexts.keys { _ = machine.step(.reachability(upstream: upstream, isReachable: true), now: now, random: 0.5) }
    }

    mutating func step(_ event: ReplayMachine.Event) -> [ReplayMachine.Action] {
        let actions = machine.step(event, now: now, random: 0.5)
        if let wake = machine.nextWake, wake <= now { Issue.record("nextWake lies in the past") }
        return actions
    }

    mutating func later(_ span: TimeSpan) -> [ReplayMachine.Action] {
        now = now + span
        return step(.tick)
    }

    mutating func accept(_ summaries: OperationSummary...) -> [ReplayMachine.Action] { summaries.flatMap { step(.changed($0)) } }

    /// Ends the attempt of `summary` with `outcome`, and commits the requested record.
    mutating func answered(
        _ summary: OperationSummary, _ outcome: AttemptOutcome = answer(200), lostAt: Timestamp? = nil
    ) -> [ReplayMachine.Action] {
        settle(step(.attempted(inflight(summary, lostAt: lostAt), outcome, body: [])), of: summary)
    }

    /// Commits the requested record or move; returns the actions that follow.
    mutating func settle(_ actions: [ReplayMachine.Action], of summary: OperationSummary) -> [ReplayMachine.Action] {
        actions.flatMap { action in
            switch action {
            case .record(summary.id, _, let disposition), .move(summary.id, _, let disposition):
                var row = summary
                row.state = disposition.state
                row.reason = disposition.reason
                row.nextAttemptAt = disposition.nextAttemptAt ?? row.nextAttemptAt
                row.probes += disposition.countsAsProbe ? 1 : 0
                return step(.settled(row))
            default: return [action]
            }
        }
    }
}

func inflight(_ summary: OperationSummary, lostAt: Timestamp? = nil) -> QueuedWrite {
    var row = operation(summary.method, principal: summary.principal)
    (row.sequence, row.place, row.id) = (summary.sequence, summary.place, summary.id)
    row.lane = laneNames.withLock { $0[summary.lane] } ?? row.lane
    (row.upstream, row.lostAt, row.probes) = (summary.upstream, lostAt, summary.probes)
    return row
}

func sent(_ sequences: Int64...) -> [ReplayMachine.Action] { sequences.map { .send(id: "\($0)", sequence: $0) } }

@Suite struct ReplayMachineTests {
    /// Returns a machine with a gate opened wide enough for ten attempts at once.
    static func wide() -> Replay {
        var replay = Replay()
        for sequence in Int64(-5)...0 {
            let one = summary(sequence, lane: "\(sequence)")
            _ = replay.accept(one)
            _ = replay.answered(one)
        }
        return replay
    }

    @Test(arguments: OperationState.allCases) func laneIsHeldByWhatIsSentAndByWhatIsInConflict(_ state: OperationState) {
        var replay = Self.wide()
        let first = replay.accept(summary(1, state, sent: noon, probes: 3))
        switch state {
        case .pending: #expect(first == sent(1))
        case .inflight: #expect(first.count == 1)  // left behind by a crash: it becomes uncertain
        default: #expect(first == [])
        }
        let holds = [OperationState.pending, .inflight, .conflicted].contains(state)
        #expect(replay.accept(summary(2)) == (holds ? [] : sent(2)))
        #expect(replay.accept(summary(3, lane: "b")) == sent(3))
    }

    @Test func oneOfEachLaneInOrderOfAcceptance() {
        var replay = Self.wide()
        let open = (Int64(1)...6).map { summary($0, lane: "lane\($0 % 3)") }
        #expect(open.flatMap { replay.accept($0) } == sent(1, 2, 3))
        #expect(replay.answered(open[1]) == sent(5))
        #expect(replay.answered(open[0]) == sent(4))
    }

    @Test func aHeadThatIsNotDueHoldsItsLane() {
        var replay = Self.wide()
        #expect(replay.accept(summary(1, due: noon + .seconds(5)), summary(2)) == [])
        #expect(replay.machine.nextWake == noon + .seconds(5))
        #expect(replay.later(.milliseconds(4_999)) == [])
        #expect(replay.later(.milliseconds(1)) == sent(1))
        #expect(replay.machine.nextWake == nil)
    }

    @Test(arguments: [TimeSpan.hours(1), .days(3650), .seconds(3)]) func aClockThatIsSetBackHoldsNothingUp(_ span: TimeSpan) {
        var replay = Self.wide()
        #expect(replay.accept(summary(1, due: noon + .seconds(5))) == [])
        #expect(replay.later(.seconds(1)) == [])
        #expect(replay.later(.milliseconds(-span.milliseconds)) == [])
        #expect(replay.later(.milliseconds(3_999)) == [])
        #expect(replay.later(.milliseconds(1)) == sent(1))
    }

    /// The row was written by a run with a clock that was ahead; no operation is delayed longer than the longest `Retry-After`.
    @Test func anotherRunsClockHoldsNothingUp() {
        var replay = Self.wide()
        let far = noon + Backoff.longest
        #expect(replay.accept(summary(1, due: far + .milliseconds(1)), summary(2, lane: "b", due: far)) == sent(1))
        #expect(replay.later(Backoff.longest) == sent(2))
    }

    @Test func priorityOrdersBetweenLanesOnlyAndWaitingCountsToo() {
        var replay = Replay(isReachable: false)
        _ = replay.accept(
            summary(1, lane: "a", priority: 5), summary(2, lane: "a", priority: -100), summary(3, lane: "b", priority: -1),
            summary(4, lane: "c", priority: 100, accepted: noon - .minutes(20)))
        var order: [Int64] = []
        var actions = replay.step(.reachability(upstream: "notes", isReachable: true))
        while case .send(_, let sequence)? = actions.first {
            order.append(sequence)
            actions = Array(actions.dropFirst()) + replay.answered(summary(sequence, lane: ["", "a", "a", "b", "c"][Int(sequence)]))
        }
        #expect(order == [4, 3, 1, 2])
    }

    @Test func needsHoldAcrossLanes() {
        var replay = Self.wide()
        #expect(replay.accept(summary(1, .dead), summary(2, lane: "b", needs: [1]), summary(3, lane: "c", needs: [99])) == sent(3))
        #expect(replay.accept(summary(1)) == sent(1))
        #expect(replay.answered(summary(1)) == sent(2))
    }

    @Test func anEditedOneGoesInThePlaceOfTheOldOne() {
        var replay = Self.wide()
        #expect(replay.accept(summary(1, .conflicted), summary(2), summary(3, place: 1)) == sent(3))
        #expect(replay.accept(summary(1, .superseded)) == [])
        #expect(replay.answered(summary(3, place: 1)) == sent(2))
    }

    @Test func theSameLaneNameAtAnotherUpstreamIsAnotherLane() {
        var replay = Replay(["notes": context(), "other": context()])
        #expect(replay.accept(summary(1, .conflicted), summary(2, upstream: "other")) == sent(2))
    }

    @Test func oneOfAnotherLaneAfterItsIdIsKnownLeavesItsOldLane() {
        var replay = Self.wide()
        #expect(replay.accept(summary(1, .conflicted, lane: "a"), summary(2, lane: "a"), summary(3, lane: "a")) == [])
        #expect(replay.accept(summary(2, lane: "b")) == sent(2))
        #expect(replay.accept(summary(1, .cancelled, lane: "a")) == sent(3))
    }

    @Test func whatIsBusyIsNotAskedForTwiceAndStaleNewsOfItIsIgnored() {
        var replay = Self.wide()
        #expect(replay.accept(summary(1)) == sent(1))
        #expect(replay.accept(summary(1), summary(1, .cancelled), summary(2)) == [])
        #expect(replay.step(.tick) == [])
        #expect(replay.step(.settled(summary(1, .cancelled))) == sent(2))
    }

    @Test func aFailedStoreIsTriedAgainInASecond() {
        var replay = Self.wide()
        #expect(replay.accept(summary(1)) == sent(1))
        #expect(replay.step(.failed(id: "1")) == [])
        #expect(replay.later(.milliseconds(999)) == [])
        #expect(replay.later(.milliseconds(1)) == sent(1))
        // The outcome of the attempt could not be recorded: the row is in flight on disk, but no attempt runs.
        _ = replay.step(.attempted(inflight(summary(1)), answer(200), body: []))
        _ = replay.step(.failed(id: "1"))
        #expect(replay.later(.seconds(1)) == sent(1))
        guard case .move("1", 1, let disposition)? = replay.step(.settled(summary(1, .inflight, sent: noon))).first else {
            Issue.record("the operation is left in flight")
            return
        }
        #expect((disposition.state, disposition.reason) == (.uncertain, .lostAnswer))
    }

    /// A refusal concerns the operation alone: it is tried less and less often.
    @Test func whatTheStoreRefusesIsTriedAtGrowingIntervals() {
        var replay = Self.wide()
        #expect(replay.accept(summary(1)) == sent(1))
        for seconds: Int64 in [1, 2, 4, 8, 16, 32, 60, 60] {
            #expect(replay.step(.refused(id: "1")) == [])
            #expect(replay.later(.milliseconds(seconds * 1000 - 1)) == [], "\(seconds)")
            #expect(replay.later(.milliseconds(1)) == sent(1), "\(seconds)")
        }
    }

    @Test func ofAnUnknownUpstreamNothingIsSent() {
        var replay = Replay()
        _ = replay.step(.reachability(upstream: "gone", isReachable: true))
        #expect(replay.accept(summary(1, upstream: "gone")) == [])
        replay.machine.reconfigure(["notes": context(), "gone": context()])
        #expect(replay.step(.tick) == sent(1))
    }

    @Test func newSettingsApplyToWhatWaits() {
        var replay = Replay()
        #expect(replay.accept(summary(1, .uncertain, sent: noon, probes: 3)) == [])
        replay.machine.reconfigure(["notes": context(uncertain: .retry)])
        #expect(replay.settle(replay.step(.tick), of: summary(1)) == sent(1))
    }

    @Test(arguments: [
        (LaneOrder.entity, String?.some("/v1/notes/1"), String?.none, "notes /v1/notes/1"), (.entity, nil, nil, "notes *"),
        (.entity, nil, "anna", "notes * anna"), (.global, "/v1/notes/1", "anna", "notes"),
    ])
    func laneNames(_ order: LaneOrder, _ entity: String?, _ principal: String?, _ name: String) {
        #expect(Lane.name(upstream: "notes", entity: entity, order: order, principal: principal) == name)
    }
}
