// Failures, limits, expiry and settling of the outbox's machine (outbox.md §1.3, §2.4).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct OperationMachineTests {
    @Test(arguments: OperationState.allCases) func theTableIsWhole(_ state: OperationState) throws {
        let targets = try #require(OperationMachine.legal[state])
        #expect(!targets.contains(state))
        #expect(targets.isEmpty == state.hasEnded)
        // Whatever has not ended can be ended, except what is under way.
        #expect(state.hasEnded || state == .inflight || targets.contains(.cancelled))
    }

    @Test func onlyPendingIsSent() {
        for state in OperationState.allCases { #expect(OperationMachine.permits(from: state, to: .inflight) == (state == .pending)) }
    }

    @Test(arguments: TransferFailure.Kind.allCases) func whatWasNeverSentIsNoAttempt(_ kind: TransferFailure.Kind) throws {
        let failure = AttemptOutcome.failed(TransferFailure(kind: kind, sent: .no, detail: "x"))
        let disposition = judged(operation(answered: 10, network: 5000), failure, random: 0.999)
        #expect(disposition.state == .pending && !disposition.countsAsAnswered)
        #expect(try #require(disposition.nextAttemptAt) <= noon + .seconds(2))
        #expect(disposition.detail?.hasSuffix(": x") == true)
    }

    @Test(arguments: [TransferFailure.Sent.maybe, .yes]) func aLostAnswerOfAPostIsUncertain(_ sent: TransferFailure.Sent) {
        let failure = AttemptOutcome.failed(TransferFailure(kind: .firstByteTimeout, sent: sent))
        let disposition = judged(operation(.post), failure)
        #expect((disposition.state, disposition.reason) == (.uncertain, .lostAnswer))
        #expect(disposition.nextAttemptAt == noon + .seconds(30))
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

    @Test func onlyAClientsOwnTimeExpires() {
        let timed = operation(.put, expiresAt: noon)
        #expect(judged(timed, answer(500)).reason == .expired)
        #expect(judged(timed, answer(200)).state == .delivered)
        #expect(judged(operation(.post, expiresAt: noon), answer(500)).state == .uncertain)
        #expect(OperationMachine.expiry(of: operation(state: .pending, expiresAt: noon), now: noon)?.state == .dead)
        #expect(OperationMachine.expiry(of: operation(state: .pending, expiresAt: noon + .seconds(1)), now: noon) == nil)
        #expect(OperationMachine.expiry(of: operation(state: .pending), now: .distantFuture) == nil)
        #expect(OperationMachine.expiry(of: operation(state: .uncertain, expiresAt: noon), now: noon) == nil)
    }

    @Test(arguments: [
        (QueueSettings.Uncertain.ask, OperationState?.none), (.retry, .some(.pending)), (.drop, .some(.cancelled)),
    ])
    func policySettlesTheUncertain(_ policy: QueueSettings.Uncertain, _ state: OperationState?) {
        let lost = operation(state: .uncertain)
        let settings = context(uncertain: policy)
        #expect(OperationMachine.settle(lost, context: settings, now: noon + .milliseconds(29_999)) == nil)
        #expect(OperationMachine.settle(lost, context: settings, now: noon + .seconds(30))?.state == state)
        #expect(OperationMachine.settle(operation(state: .pending), context: settings, now: noon + .hours(1)) == nil)
    }

    @Test func afterACrashTheHarmlessIsSentAgainAtOnce() {
        #expect(OperationMachine.settle(operation(.put, state: .uncertain), context: context(), now: noon)?.state == .pending)
        let keyed = context(honoured: .yes)
        #expect(OperationMachine.settle(operation(.post, state: .uncertain), context: keyed, now: noon)?.state == .pending)
    }
}
