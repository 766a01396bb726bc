// Failures, limits, expiry and settling of the outbox's machine (docs/outbox.md#states, docs/outbox.md#resend-rule).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct OperationMachineTests {
    @Test(arguments: OperationState.allCases) func theTableIsWhole(_ state: OperationState) throws {
        let targets = try #require(OperationMachine.legal[state])
        #expect(!targets.contains(state))
        #expect(targets.isEmpty == state.hasEnded)
        // Every operation that has not ended can be cancelled, except one in flight.
        #expect(state.hasEnded || state == .inflight || targets.contains(.cancelled))
    }

    @Test func onlyPendingIsSent() {
        for state in OperationState.allCases { #expect(OperationMachine.permits(from: state, to: .inflight) == (state == .pending)) }
    }

    @Test(arguments: TransferFailure.Kind.allCases.filter { $0 != .damaged })
    func whatWasNeverSentIsNoAttempt(_ kind: TransferFailure.Kind) throws {
        let failure = AttemptOutcome.failed(TransferFailure(kind: kind, sent: .no, detail: "x"))
        let disposition = judged(operation(answered: 10, network: 5000), failure, random: 0.999)
        #expect(disposition.state == .pending && !disposition.countsAsAnswered)
        #expect(try #require(disposition.nextAttemptAt) <= noon + .seconds(2))
        #expect(disposition.detail?.hasSuffix(": x") == true)
    }

    @Test(arguments: [HTTPRequest.Method.post, .put]) func aDamagedBodyIsNotSentAgain(_ method: HTTPRequest.Method) {
        let disposition = judged(operation(method), .failed(TransferFailure(kind: .damaged, sent: .maybe, detail: "its body is missing")))
        #expect((disposition.state, disposition.reason, disposition.detail) == (.dead, .damaged, "its body is missing"))
        #expect(!disposition.countsAsAnswered)
    }

    @Test(arguments: [TransferFailure.Sent.maybe, .yes]) func aLostAnswerOfAPostIsUncertain(_ sent: TransferFailure.Sent) {
        let failure = AttemptOutcome.failed(TransferFailure(kind: .firstByteTimeout, sent: sent))
        let disposition = judged(operation(.post), failure)
        #expect((disposition.state, disposition.reason) == (.uncertain, .lostAnswer))
        #expect(disposition.nextAttemptAt == noon + .seconds(1))
        #expect(judged(operation(.put), failure).state == .pending)
        #expect(judged(operation(.delete), failure).state == .pending)
        #expect(judged(operation(.patch), failure).state == .uncertain)
    }

    @Test func answersAreLimited() {
        #expect(judged(operation(.put, answered: 9), answer(500)).state == .pending)
        let last = judged(operation(.put, answered: 10), answer(500))
        #expect((last.state, last.reason) == (.dead, .exhausted))
        #expect(judged(operation(.put, answered: 10), answer(503)).state == .pending)
        #expect(judged(operation(.put, answered: 10), answer(200)).state == .delivered)
    }

    @Test func theLimitOfAnswersIsASetting() {
        var patient = context()
        patient.answeredLimit = 2
        func judged(_ answered: Int) -> Disposition {
            OperationMachine.disposition(
                of: operation(.put, answered: answered), after: answer(500), context: patient, now: noon, random: 0.5)
        }
        #expect(judged(1).state == .pending)
        #expect(judged(2).reason == .exhausted)
    }

    @Test func onlyAClientsOwnTimeExpires() {
        let timed = operation(.put, expiresAt: noon)
        #expect(judged(timed, answer(500)).reason == .expired)
        #expect(judged(timed, answer(200)).state == .delivered)
        #expect(judged(operation(.post, expiresAt: noon), answer(500)).state == .uncertain)
        for state in [OperationState.pending, .parked] {
            #expect(OperationMachine.expiry(of: summary(1, state, expires: noon), now: noon)?.state == .dead)
            #expect(OperationMachine.expiry(of: summary(1, state, expires: noon + .milliseconds(1)), now: noon) == nil)
            #expect(OperationMachine.expiry(of: summary(1, state), now: .distantFuture) == nil)
        }
        #expect(OperationMachine.expiry(of: summary(1, .uncertain, expires: noon), now: noon) == nil)
    }

    @Test(arguments: [
        (QueueSettings.Uncertain.ask, OperationState?.none), (.retry, .some(.pending)), (.drop, .some(.cancelled)),
    ])
    func policySettlesTheUncertainOnceItWasLookedForEnough(_ policy: QueueSettings.Uncertain, _ state: OperationState?) {
        let settings = context(uncertain: policy)
        #expect(OperationMachine.settle(summary(1, .uncertain, sent: noon, probes: 2), context: settings, now: noon) == nil)
        #expect(OperationMachine.settle(summary(1, .uncertain, sent: noon, probes: 3), context: settings, now: noon)?.state == state)
        #expect(OperationMachine.settle(summary(1, .pending, probes: 3), context: settings, now: noon) == nil)
    }

    @Test func afterACrashTheHarmlessIsSentAgainAtOnce() {
        let put = summary(1, .uncertain, method: .put, sent: noon)
        #expect(OperationMachine.settle(put, context: context(), now: noon)?.state == .pending)
        let post = summary(1, .uncertain, sent: noon)
        #expect(OperationMachine.settle(post, context: context(honoured: .yes), now: noon)?.state == .pending)
        #expect(OperationMachine.settle(post, context: context(honoured: .unknown), now: noon) == nil)
    }

    @Test func aLookDecides() {
        let lost = operation(state: .uncertain)
        let mapping = ServerMapping(id: ServerID(text: "17", isNumber: true), url: "https://api.example.com/v1/notes/17")
        let present = OperationMachine.disposition(of: lost, seen: .present(mapping), context: context(), now: noon)
        #expect((present.state, present.reason, present.mapping) == (.delivered, .probed, mapping))
        let absent = OperationMachine.disposition(of: lost, seen: .absent, context: context(), now: noon)
        #expect((absent.state, absent.nextAttemptAt) == (.pending, noon))
        let unknown = OperationMachine.disposition(of: lost, seen: .unknown, context: context(), now: noon)
        #expect((unknown.state, unknown.nextAttemptAt) == (.uncertain, noon + .seconds(15)))
        var crashed = lost
        crashed.reason = .crashed
        #expect(OperationMachine.disposition(of: crashed, seen: .unknown, context: context(), now: noon).reason == .crashed)
        // Sent twice, but only one attempt is known to have ended.
        var twice = lost
        twice.request.method = .put
        twice.lostAt = noon
        #expect(OperationMachine.disposition(of: twice, seen: .present(nil), context: context(), now: noon).holdsLaneUntil == nil)
        twice.lostAt = noon + .seconds(5)
        let held = OperationMachine.disposition(of: twice, seen: .present(nil), context: context(), now: noon + .seconds(6))
        #expect(held.holdsLaneUntil == noon + .seconds(35))
        for disposition in [present, absent, unknown] { #expect(disposition.countsAsProbe && !disposition.countsAsAnswered) }
    }

    @Test(
        arguments: [
            (IdempotencySettings.Honoured.no, HTTPFields(), true), (.unknown, [:], true), (.yes, [:], false),
            (.no, [.ifMatch: "\"1\""], false), (.no, [.ifNoneMatch: "*"], false),
        ] as [(IdempotencySettings.Honoured, HTTPFields, Bool)])
    func anEarlierAttemptThatMayStillRunHoldsTheLane(_ honoured: IdempotencySettings.Honoured, _ fields: HTTPFields, _ holds: Bool) {
        var resent = operation(.put, fields: fields)
        #expect(judged(resent, answer(200), context: context(honoured: honoured)).holdsLaneUntil == nil)
        resent.lostAt = noon
        #expect(judged(resent, answer(200), context: context(honoured: honoured)).holdsLaneUntil == (holds ? noon + .seconds(30) : nil))
    }
}
