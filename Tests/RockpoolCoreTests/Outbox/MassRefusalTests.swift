// A server that comes back broken does not use up the queue (docs/outbox.md#mass-refusal, docs/outbox.md#gate).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct MassRefusalTests {
    /// A queue of writes in lanes of their own, and an upstream that answers `broken` until `end`.
    private struct Queue {
        var replay = Replay(isReachable: false)
        let broken: @Sendable (Int64) -> (AttemptOutcome, String)
        let end: Timestamp
        var attempts: [Int64] = []
        var states: [Int64: OperationState] = [:]
        var reasons: [Int64: OperationReason] = [:]
        var answered: [Int64: Int] = [:]
        var lastDelivery = noon

        func row(_ sequence: Int64) -> OperationSummary {
            summary(sequence, lane: "\(sequence)", method: sequence > 1000 ? .delete : .post)
        }

        mutating func run(_ sequences: ClosedRange<Int64>, until limit: Timestamp = noon + .minutes(20)) {
            for sequence in sequences { _ = replay.accept(row(sequence)) }
            var actions = replay.step(.reachability(upstream: "notes", isReachable: true))[...]
            while true {
                if let action = actions.popFirst() {
                    actions += perform(action)
                } else if let wake = replay.machine.nextWake, wake <= limit {
                    replay.now = wake
                    actions += replay.step(.tick)
                } else {
                    return
                }
            }
        }

        private mutating func perform(_ action: ReplayMachine.Action) -> [ReplayMachine.Action] {
            switch action {
            case .send(_, let sequence):
                attempts.append(sequence)
                let (outcome, body) = replay.now < end ? broken(sequence) : (answer(201), "")
                var sent = inflight(row(sequence))
                sent.answeredAttempts = answered[sequence] ?? 0
                return replay.step(.attempted(sent, outcome, body: Array(body.utf8)))
            case .look(_, let sequence):
                var found = inflight(row(sequence))
                (found.state, found.reason) = (.uncertain, .lostAnswer)
                found.probes = replay.machine.summary(of: sequence)?.probes ?? 0
                return replay.step(.looked(found, .unknown))
            case .record(_, let sequence, let disposition), .move(_, let sequence, let disposition):
                var changed = row(sequence)
                (changed.state, changed.reason) = (disposition.state, disposition.reason)
                changed.nextAttemptAt = disposition.nextAttemptAt ?? replay.now
                changed.probes = (replay.machine.summary(of: sequence)?.probes ?? 0) + (disposition.countsAsProbe ? 1 : 0)
                (states[sequence], reasons[sequence]) = (disposition.state, disposition.reason)
                if disposition.countsAsAnswered { answered[sequence, default: 0] += 1 }
                if disposition.state == .delivered { lastDelivery = replay.now }
                return replay.step(.settled(changed))
            }
        }

        var lost: Int { states.values.count { $0 == .dead || $0 == .uncertain || $0 == .conflicted } }
    }

    private static let reset = AttemptOutcome.failed(TransferFailure(kind: .reset, sent: .yes))

    private static func kinds(_ number: Int) -> (AttemptOutcome, String) {
        [
            (answer(404), "not found"), (answer(405), ""), (answer(403), ""), (answer(410), ""), (answer(500), ""), (answer(502), ""),
            (reset, ""), (answer(501), ""), (answer(422), #"{"error":"no database"}"#), (answer(400), ""),
            (answer(302, [.location: "/wartung"]), ""),
            (answer(401), ""),
        ][number]
    }

    @Test(arguments: 0..<12) func fewWritesAreLost(_ kind: Int) {
        var queue = Queue(broken: { _ in Self.kinds(kind) }, end: noon + .seconds(6))
        queue.run(1...100)
        #expect((3...4).contains(queue.lost), "\(Self.kinds(kind).0): \(queue.lost)")
        #expect(queue.states.values.count { $0 == .delivered } == 100 - queue.lost)
        #expect(queue.lastDelivery <= noon + .seconds(11), "\(queue.lastDelivery - noon)")
        #expect(queue.attempts.count == 100 && queue.replay.machine.routePauses.isEmpty)
    }

    /// Different failures of a server that starts are one.
    @Test func mixedFailuresAreEqual() {
        var queue = Queue(broken: { [(answer(500), ""), (Self.reset, ""), (answer(502), "")][Int($0) % 3] }, end: noon + .seconds(6))
        queue.run(1...100)
        #expect(queue.lost <= 4)
    }

    @Test func aLongOutageCostsOneWriteInThirtySeconds() {
        var queue = Queue(broken: { _ in (answer(404), "") }, end: noon + .minutes(10))
        queue.run(1...100)
        #expect((20...28).contains(queue.lost), "\(queue.lost)")
        #expect(queue.lastDelivery <= noon + .minutes(10) + .seconds(31))
    }

    /// 404 is what a DELETE gets from a server that has no data yet, too: it is believed only after an effect, or the third time.
    @Test func aServerWithoutItsDataHasDeletedNothing() {
        var queue = Queue(broken: { _ in (answer(404), "") }, end: noon + .seconds(6))
        queue.run(1001...1100)
        #expect(
            queue.states.count == 100 && queue.states.values.allSatisfy { $0 == .delivered } && !queue.reasons.values.contains(.alreadyGone)
        )
        #expect(queue.lastDelivery <= noon + .seconds(11), "\(queue.lastDelivery - noon)")

        // All of them were deleted by somebody else: the first is asked for three times.
        queue = Queue(broken: { _ in (answer(404), "") }, end: noon + .minutes(10))
        queue.run(1001...1100)
        #expect(queue.reasons.count == 100 && queue.reasons.values.allSatisfy { $0 == .alreadyGone })
        #expect(queue.lastDelivery <= noon + .seconds(22), "\(queue.lastDelivery - noon)")
    }

    /// The answer to each bad record is its own; another version of an entity is no fault of the server.
    @Test(arguments: [400, 422, 413, 409, 412, 428]) func refusalsOfContentDoNotPause(_ status: Int) {
        var queue = Queue(broken: { (answer(status), status < 423 && status != 409 ? "record \($0)" : "") }, end: noon + .minutes(1))
        queue.run(1...20)
        #expect(queue.attempts.count == 20 && queue.replay.machine.routePauses.isEmpty && queue.replay.now == noon)
    }

    /// Entities that were deleted upstream are conflicts of their own.
    @Test func entitiesThatAreGoneDoNotPause() {
        var replay = Replay()
        for sequence in Int64(1)...9 {
            #expect(replay.accept(summary(sequence, lane: "\(sequence)")) == sent(sequence))
            _ = replay.answered(summary(sequence, lane: "\(sequence)"), answer(404))
        }
        #expect(replay.machine.routePauses.isEmpty)
    }

    @Test(arguments: [429, 503, 408, 425]) func whatIsSentLaterDoesNotPause(_ status: Int) {
        var queue = Queue(broken: { _ in (answer(status), "") }, end: noon + .seconds(6))
        queue.run(1...20)
        #expect(queue.lost == 0 && queue.states.values.allSatisfy { $0 == .delivered })
    }

    @Test func routesPauseAloneAndTellWhatWaits() throws {
        var replay = Replay()
        func row(_ sequence: Int64, _ route: String?, _ method: HTTPRequest.Method = .post) -> OperationSummary {
            var row = summary(sequence, lane: "\(sequence)", method: method)
            row.route = route
            return row
        }
        for sequence in Int64(1)...3 {
            #expect(replay.accept(row(sequence, "/a/**")) == sent(sequence))
            _ = replay.answered(row(sequence, "/a/**"), answer(404))
        }
        let pause = try #require(replay.machine.routePauses["notes"]?.first)
        #expect((pause.route, pause.cause, pause.since, pause.nextTest) == ("/a/**", "404", noon, noon + .seconds(3)))
        #expect(replay.accept(row(4, "/a/**")) == [])
        #expect(replay.accept(row(5, "/b/**")) == sent(5) && replay.answered(row(5, "/b/**")) == [])
        #expect(replay.accept(row(6, nil)) == sent(6) && replay.answered(row(6, nil)) == [])
        #expect(replay.machine.nextWake == noon + .seconds(3))
        let reason = WaitReason(
            operation(state: .pending, firstSentAt: nil), standing: OperationRelations(), reachability: Reachability(now: noon),
            pause: pause,
            now: noon)
        #expect(reason?.words.hasPrefix("paused: mass-refusal") == true)
        // One at a time is tried: 4 is refused again, 7 has effect.
        #expect(replay.accept(row(7, "/a/**"), row(8, "/a/**")) == [])
        #expect(replay.later(.seconds(3)) == sent(4) && replay.answered(row(4, "/a/**"), answer(404)) == [])
        #expect(replay.later(.milliseconds(5_999)) == [] && replay.later(.milliseconds(1)) == sent(7))
        #expect(replay.answered(row(7, "/a/**")) == sent(8) && replay.machine.routePauses.isEmpty)
    }

    /// Returns a machine whose route PATCH pauses while 4 and 5 wait.
    private func paused() -> Replay {
        var replay = Replay()
        for sequence in Int64(1)...3 {
            _ = replay.accept(summary(sequence, lane: "\(sequence)"))
            _ = replay.answered(summary(sequence, lane: "\(sequence)"), answer(405))
        }
        #expect(replay.accept(summary(4, lane: "4"), summary(5, lane: "5")) == [])
        return replay
    }

    @Test func effectsOfLiveWritesEndThePause() {
        var replay = paused()
        func live(_ sign: RouteSign, of client: String = "") -> ReplayMachine.Event {
            .answered(upstream: "notes", route: "PATCH", client: client, sign, id: nil)
        }
        let actions = [live(.refusal(cause: "405")), live(.nothing), live(.effect, of: "ada"), live(.effect)].map { replay.step($0) }
        #expect(actions == [[], [], [], sent(4)])
    }

    /// A client that is refused for what it is, or for what it sends, does not stop the others.
    @Test func aPauseConcernsOneClientUntilAnotherIsRefusedAlike() {
        func row(_ sequence: Int64, _ principal: String) -> OperationSummary {
            summary(sequence, lane: "\(sequence)", principal: principal)
        }
        var replay = paused()
        #expect(replay.machine.routePauses["notes"]?.map(\.client) == [""])
        #expect(replay.accept(row(7, "bob")) == sent(7) && replay.answered(row(7, "bob"), answer(422)) == [])
        #expect(replay.machine.routePauses["notes"]?.map(\.client) == [""])
        // The first equal refusal of another one: the server refuses everybody.
        #expect(replay.accept(row(8, "bob")) == sent(8) && replay.answered(row(8, "bob"), answer(405)) == [])
        #expect(replay.machine.routePauses["notes"]?.map(\.client) == [nil])
        #expect(replay.accept(row(9, "ada")) == [])
        #expect(replay.later(.seconds(3)) == sent(4) && replay.answered(summary(4, lane: "4")) == sent(5, 9))
    }

    /// Two clients may each send bad records: their refusals have one status, and bodies of their own.
    @Test func aPauseIsWidenedByAnEqualBodyOnly() {
        func refused(_ sequence: Int64, _ principal: String, _ body: String, _ replay: inout Replay) {
            let row = summary(sequence, lane: "\(sequence)", principal: principal)
            _ = replay.accept(row)
            _ = replay.settle(replay.step(.attempted(inflight(row), answer(422), body: Array(body.utf8))), of: row)
        }
        var replay = Replay()
        for sequence in Int64(1)...3 { refused(sequence, "ada", "a is missing", &replay) }
        refused(4, "bob", "b is too long", &replay)
        #expect(replay.machine.routePauses["notes"]?.map(\.client) == ["ada"])
        refused(5, "bob", "a is missing", &replay)
        #expect(replay.machine.routePauses["notes"]?.map(\.client) == [nil])
    }

    /// The store may not lease the write that is tried: that says nothing of the upstream, and the next one is tried at once.
    @Test func aWriteThatCannotBeSentIsNoTest() {
        var replay = paused()
        #expect(replay.later(.seconds(3)) == sent(4))
        #expect(replay.step(.failed(id: "4")) == sent(5))
        #expect(replay.answered(summary(5, lane: "5")) == [] && replay.machine.routePauses.isEmpty)
        #expect(replay.later(.seconds(1)) == sent(4))
    }

    /// A server that refuses everybody alike pauses for all after three, whoever sent them.
    @Test func threeRefusalsOfThreeClientsPauseForAll() {
        var replay = Replay()
        for (sequence, principal) in zip(Int64(1)..., ["ada", "bob", "eve"]) {
            _ = replay.accept(summary(sequence, lane: "\(sequence)", principal: principal))
            _ = replay.answered(summary(sequence, lane: "\(sequence)", principal: principal), answer(405))
        }
        #expect(replay.machine.routePauses["notes"]?.map(\.client) == [nil])
        #expect(replay.accept(summary(4, lane: "4", principal: "zoe")) == [])
    }

    @Test func peopleOverrideThePause() {
        var replay = paused()
        #expect(replay.step(.urged(summary(5, lane: "5"))) == sent(5))
        #expect(replay.answered(summary(5, lane: "5"), answer(405)) == [])
        #expect(replay.step(.overruled(upstream: "notes")) == sent(4))
    }

    @Test func aPauseOutlivesAnAbsenceAndAReload() {
        var replay = paused()
        _ = replay.step(.reachability(upstream: "notes", isReachable: false))
        #expect(replay.later(.minutes(5)) == [] && replay.machine.nextWake == nil)
        #expect(replay.step(.reachability(upstream: "notes", isReachable: true)) == sent(4))
        _ = replay.answered(summary(4, lane: "4"), answer(405))
        replay.machine.forgetOperations()
        #expect(replay.accept(summary(5, lane: "5"), summary(6, lane: "6")) == [])
        #expect(replay.later(.seconds(6)) == sent(5))
        #expect(replay.answered(summary(5, lane: "5")) == sent(6))
    }

    @Test func onlyEqualRefusalsOfDifferentWritesWithinAMinutePause() {
        func pauses(_ steps: [(sequence: Int64, outcome: AttemptOutcome, wait: TimeSpan)]) -> Bool {
            var replay = Replay()
            for step in steps {
                _ = replay.accept(summary(step.sequence, lane: "\(step.sequence)", principal: "ada"))
                _ = replay.answered(summary(step.sequence, lane: "\(step.sequence)", principal: "ada"), step.outcome)
                _ = replay.later(step.wait)
            }
            return !replay.machine.routePauses.isEmpty
        }
        let (bad, good) = (answer(405), answer(201))
        #expect(pauses([(1, bad, .zero), (2, bad, .seconds(29)), (3, bad, .zero)]))
        #expect(!pauses([(1, bad, .seconds(31)), (2, bad, .seconds(31)), (3, bad, .zero)]))
        #expect(!pauses([(1, bad, .zero), (2, bad, .zero), (4, good, .zero), (3, bad, .zero)]))
        #expect(!pauses([(1, answer(500), .seconds(1)), (1, answer(500), .seconds(1)), (1, answer(500), .zero)]))
        #expect(!pauses([(1, bad, .zero), (2, answer(400), .zero), (3, answer(403), .zero)]))
        #expect(pauses([(1, bad, .zero), (2, answer(400), .zero), (3, bad, .zero), (4, answer(400), .zero), (5, bad, .zero)]))
        // The first 403 may be that of an old credential, so the write is not lost yet.
        #expect(pauses([(1, answer(403), .zero), (2, answer(403), .zero), (3, answer(403), .zero)]))
    }

    @Test func onlyEffectsWidenTheGate() {
        func width(after outcome: AttemptOutcome) -> Int {
            var replay = Replay()
            for sequence in Int64(1)...2 {
                _ = replay.accept(summary(sequence, lane: "\(sequence)"))
                _ = replay.answered(summary(sequence, lane: "\(sequence)"), outcome)
            }
            return (10...20).flatMap { replay.accept(summary($0, lane: "\($0)")) }.count
        }
        #expect(width(after: answer(204)) == 4)
        for refusal in [answer(405), answer(422), answer(500), Self.reset, answer(302, [.location: "/x"])] {
            #expect(width(after: refusal) == 1)
        }
    }
}
