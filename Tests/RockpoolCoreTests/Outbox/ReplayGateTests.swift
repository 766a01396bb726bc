// Conditions that hold back a ready operation or wake a waiting one: the upstream's gate, credentials, time, probes
// (docs/outbox.md#credentials, docs/outbox.md#lane-holds, docs/outbox.md#gate).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct ReplayGateTests {
    @Test func nothingLeavesForWhoIsAway() {
        var replay = Replay(isReachable: false)
        #expect(replay.accept(summary(1), summary(2, lane: "b")) == [])
        #expect(replay.machine.somethingWaits(for: "notes"))
        #expect(replay.machine.nextWake == nil)
        #expect(replay.step(.reachability(upstream: "notes", isReachable: true)) == sent(1))
        #expect(replay.step(.reachability(upstream: "notes", isReachable: false)) == [])
        #expect(replay.answered(summary(1)) == [])
        #expect(replay.step(.reachability(upstream: "notes", isReachable: true)) == sent(2))
        _ = replay.answered(summary(2, lane: "b"))
        #expect(!replay.machine.somethingWaits(for: "notes"))
        #expect(replay.machine.count == 0)
    }

    @Test func everyAnswerDoublesWhatMayBeUnderWay() {
        var replay = Replay(isReachable: false)
        for sequence in Int64(1)...200 { _ = replay.accept(summary(sequence, lane: "\(sequence)")) }
        var under = replay.step(.reachability(upstream: "notes", isReachable: true))
        var widths = [under.count]
        for _ in 1...7 {
            guard case .send(_, let sequence)? = under.first else { break }
            under = under.dropFirst() + replay.answered(summary(sequence, lane: "\(sequence)"))
            widths.append(under.count)
        }
        #expect(widths == [1, 2, 4, 8, 16, 32, 32, 32])
        guard case .send(_, let lost)? = under.first else { return }
        // After a failed connection, one attempt at a time is sent again, once the running ones have ended.
        #expect(replay.answered(summary(lost, lane: "\(lost)"), .failed(TransferFailure(kind: .refused, sent: .no))) == [])
    }

    @Test func aThrottledUpstreamIsLeftInPeace() {
        var replay = ReplayMachineTests.wide()
        #expect(replay.accept(summary(1), summary(2, lane: "b")) == sent(1, 2))
        #expect(replay.answered(summary(1), answer(503, [.retryAfter: "60"])) == [])
        #expect(replay.accept(summary(3, lane: "c")) == [])
        let wake = replay.machine.nextWake
        #expect(wake == noon + .seconds(63))
        #expect(replay.later(.seconds(63)).count == 0)  // 2 is still under way, and after a pause operations are sent one at a time
        #expect(replay.machine.nextWake == nil)
        #expect(replay.answered(summary(2, lane: "b")).count == 2)
    }

    /// The limit may be the client's own.
    @Test(arguments: [429, 503]) func aPauseIsTheClientsWhoWasTold(status: Int) {
        var replay = ReplayMachineTests.wide()
        _ = replay.step(.proved(principal: "anna"))
        #expect(replay.accept(summary(1, principal: "anna")) == sent(1))
        #expect(replay.answered(summary(1, principal: "anna"), answer(status, [.retryAfter: "60"])) == [])
        #expect(replay.accept(summary(2, lane: "b", principal: "anna")) == [])
        #expect(replay.accept(summary(3, lane: "c", principal: "ben")) == sent(3))
        #expect(replay.machine.nextWake == noon + .seconds(63) && replay.machine.pauses == ["notes": noon + .seconds(63)])
        _ = replay.answered(summary(3, lane: "c", principal: "ben"))
        #expect(replay.later(.seconds(63)).count == 2)
    }

    /// Two who are not proved may be one.
    @Test(arguments: [(true, true), (true, false), (false, false)]) func aSecondClientPausesAll(isFirstProved: Bool, isSecondProved: Bool) {
        var replay = ReplayMachineTests.wide()
        for (name, isProved) in [("anna", isFirstProved), ("ben", isSecondProved)] where isProved {
            _ = replay.step(.proved(principal: name))
        }
        _ = replay.accept(summary(1, principal: "anna"))
        _ = replay.accept(summary(2, lane: "b", principal: "ben"))
        _ = replay.answered(summary(1, principal: "anna"), answer(503, [.retryAfter: "600"]))
        _ = replay.answered(summary(2, lane: "b", principal: "ben"), answer(503, [.retryAfter: "60"]))
        let third = replay.accept(summary(3, lane: "c", principal: "cleo"))
        #expect(third == (isFirstProved || isSecondProved ? [] : sent(3)))
        guard third.isEmpty else { return }
        // Until the earlier of the two ends.
        #expect(replay.later(.seconds(63)) == sent(2))
    }

    @Test func aPersonEndsThePausesOfClients() {
        var replay = ReplayMachineTests.wide()
        _ = replay.accept(summary(1, principal: "anna"))
        _ = replay.answered(summary(1, principal: "anna"), answer(429, [.retryAfter: "600"]))
        #expect(replay.accept(summary(2, lane: "b", principal: "anna")) == [])
        #expect(replay.step(.resumed(upstream: "notes")) == sent(2) && replay.machine.pauses == [:])
    }

    @Test func anIdentitysCredentialWakesWhatItParked() {
        var replay = ReplayMachineTests.wide()
        _ = replay.accept(
            summary(1, .parked, reason: .auth, principal: "anna"), summary(2, .parked, lane: "b", reason: .auth, principal: "ben"),
            summary(3, .parked, lane: "c", reason: .redirected, principal: "anna"))
        let actions = replay.step(.credential(principal: "anna"))
        guard case .move("1", 1, let disposition)? = actions.first, actions.count == 1 else {
            Issue.record("\(actions)")
            return
        }
        #expect((disposition.state, disposition.nextAttemptAt) == (.pending, noon))
        #expect(replay.settle(actions, of: summary(1, principal: "anna")) == sent(1))
    }

    @Test func timeExpiresAlsoWhatStandsBehindOthers() {
        var replay = Replay(isReachable: false)
        #expect(replay.accept(summary(1), summary(2, expires: noon + .seconds(9)), summary(3)) == [])
        #expect(replay.later(.milliseconds(8_999)) == [])
        guard case .move("2", 2, let disposition)? = replay.later(.milliseconds(1)).first, disposition.reason == .expired else {
            Issue.record("2 must expire")
            return
        }
        #expect(replay.step(.settled(summary(2, .dead, reason: .expired))) == [])
        #expect(replay.step(.reachability(upstream: "notes", isReachable: true)) == sent(1))
        #expect(replay.answered(summary(1)) == sent(3))  // a dead operation has left its lane
    }

    @Test(arguments: [QueueSettings.Uncertain.ask, .retry, .drop])
    func theUncertainIsLookedForThenItsPolicyApplies(_ policy: QueueSettings.Uncertain) {
        var replay = Replay(["notes": context(uncertain: policy)])
        #expect(replay.accept(summary(1)) == sent(1))
        #expect(replay.answered(summary(1), .failed(TransferFailure(kind: .reset, sent: .yes))) == [])
        var row = summary(1, .uncertain, sent: noon)
        for wait in [TimeSpan.seconds(1), .seconds(15), .seconds(15)] {
            #expect(replay.later(wait - .milliseconds(1)) == [])
            #expect(replay.later(.milliseconds(1)) == [.look(id: "1", sequence: 1)])
            _ = replay.settle(replay.step(.looked(inflight(row), .unknown)), of: row)
            row.probes += 1
        }
        let last = replay.later(.seconds(15))
        switch policy {
        case .ask: #expect(last == [] && replay.machine.nextWake == nil)
        case .retry: #expect(replay.settle(last, of: summary(1)) == sent(1))
        case .drop: #expect(replay.settle(last, of: summary(1)) == [] && replay.machine.count == 0)
        }
    }

    @Test func aConflictWithOurOwnLostWriteIsNone() {
        let row = summary(1, method: .put)
        let mapping = ServerMapping(id: ServerID(text: "17", isNumber: true), url: "https://api.example.com/v1/notes/17")
        for (effect, state) in [
            (ObservedEffect.present(mapping), OperationState.delivered), (.absent, .conflicted), (.unknown, .conflicted),
        ] {
            var replay = Replay()
            #expect(replay.accept(row) == sent(1))
            #expect(replay.answered(row, answer(412), lostAt: noon) == [.look(id: "1", sequence: 1)])
            guard case .record("1", 1, let disposition)? = replay.step(.looked(inflight(row, lostAt: noon), effect)).first else {
                Issue.record("\(effect)")
                continue
            }
            #expect(disposition.state == state)
        }
    }

    @Test func whatComesNextWaitsForAZombie() {
        var replay = Replay()
        let put = summary(1, method: .put)
        #expect(replay.accept(put, summary(2), summary(3, lane: "b")) == sent(1))
        #expect(replay.answered(put, lostAt: noon - .seconds(10)) == sent(3))
        #expect(replay.machine.nextWake == noon + .seconds(20))
        _ = replay.answered(summary(3, lane: "b"))
        #expect(replay.accept(summary(4)) == [])
        #expect(replay.later(.milliseconds(19_999)) == [])
        #expect(replay.later(.milliseconds(1)) == sent(2))
    }

    @Test func aCredentialShownWhileTheOldOneWasBeingRefusedWakesToo() {
        var replay = Replay()
        let row = summary(1, principal: "anna")
        #expect(replay.accept(row) == sent(1))
        #expect(replay.step(.credential(principal: "anna")) == [])
        let actions = replay.answered(row, answer(401))
        guard case .move("1", 1, let disposition)? = actions.first else {
            Issue.record("\(actions)")
            return
        }
        #expect(disposition.state == .pending)
        #expect(replay.settle(actions, of: row) == sent(1))
        // Refused again without a newer credential: the operation stays parked.
        #expect(replay.answered(row, answer(401)) == [])
    }

    @Test func aKeyForgottenWhileTheUpstreamWasAwayProtectsNoMore() {
        var replay = Replay(["notes": context(honoured: .yes, ttl: .minutes(1))])
        var row = summary(1, sent: noon)
        #expect(replay.accept(row) == sent(1))
        #expect(replay.answered(row, .failed(TransferFailure(kind: .reset, sent: .yes))) == [])
        _ = replay.step(.reachability(upstream: "notes", isReachable: false))
        #expect(replay.later(.minutes(2)) == [])
        let actions = replay.step(.reachability(upstream: "notes", isReachable: true))
        guard case .move("1", 1, let disposition)? = actions.first else {
            Issue.record("\(actions)")
            return
        }
        #expect(disposition.state == .uncertain)
        #expect(replay.settle(actions, of: row) == [.look(id: "1", sequence: 1)])
        // The user permits sending it twice.
        (row.state, row.nextAttemptAt) = (.uncertain, noon + .hours(1))
        _ = replay.step(.settled(row))
        (row.state, row.nextAttemptAt) = (.pending, noon)
        #expect(replay.accept(row) == sent(1))
    }

    @Test(arguments: [QueueSettings.Uncertain.ask, .retry]) func aRefusedKeyIsNotTriedForEver(_ policy: QueueSettings.Uncertain) {
        var replay = Replay(["notes": context(honoured: .yes, uncertain: policy)])
        let row = summary(1, sent: noon)
        #expect(replay.accept(row) == sent(1))
        let refusal = ReplayMachine.Event.attempted(inflight(row), answer(422), body: Array("idempotency key reused".utf8))
        #expect(replay.settle(replay.step(refusal), of: row) == [])
        let exhausted = judged(
            operation(answered: 10), answer(422), body: "idempotency", context: context(honoured: .yes, uncertain: policy))
        #expect(exhausted.state == (policy == .retry ? .dead : .uncertain))
    }

    @Test func whatIsGivenUpMayStillRun() {
        var replay = Replay(["notes": context(honoured: .yes)])
        let put = summary(1, method: .put, sent: noon)
        #expect(replay.accept(put, summary(2), summary(3, lane: "b")) == sent(1))
        #expect(replay.answered(put, answer(504)) == sent(3))
        #expect(replay.accept(summary(1, .cancelled, method: .put)) == [])
        #expect(replay.later(.milliseconds(29_999)) == [])
        _ = replay.answered(summary(3, lane: "b"))
        #expect(replay.later(.milliseconds(1)) == sent(2))
    }

    @Test func whatWasGivenUpBeforeAStartMayStillRun() {
        var replay = Replay()
        #expect(replay.step(.held(upstream: "notes", lane: "a", principal: nil, until: noon + .seconds(20))) == [])
        #expect(replay.accept(summary(2), summary(3, lane: "b")) == sent(3))
        #expect(replay.machine.nextWake == noon + .seconds(20))
    }

    /// 10,000 operations in one lane or in as many lanes, 100,000 steps: the cost of a step depends on the depth of a heap, not on the
    /// number of operations.
    @Test(arguments: [1, 10_000]) func manyOperationsAreStepped(_ lanes: Int) {
        var replay = Replay(isReachable: false)
        func row(_ sequence: Int64) -> OperationSummary { summary(sequence, lane: "\(Int(sequence) % lanes)") }
        for sequence in Int64(1)...10_000 { _ = replay.accept(row(sequence)) }
        for _ in 1...7 {
            for sequence in Int64(1)...10_000 { _ = replay.step(.changed(row(sequence))) }
        }
        var waiting = replay.step(.reachability(upstream: "notes", isReachable: true))[...]
        var delivered = 0
        while case .send(_, let sequence)? = waiting.popFirst() {
            waiting += replay.answered(row(sequence))
            delivered += 1
        }
        #expect(delivered == 10_000)
        #expect(replay.machine.count == 0 && replay.machine.nextWake == nil)
    }
}
