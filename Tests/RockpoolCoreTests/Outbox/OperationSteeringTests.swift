// The commands that a user may give in each state (docs/outbox.md#steering, P13).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct OperationSteeringTests {
    @Test(arguments: OperationSteering.allCases, OperationState.allCases)
    func agreesWithTheMachine(_ steering: OperationSteering, _ state: OperationState) {
        switch steering.verdict(on: operation(state: state)) {
        case .allowed(let target, _, _):
            #expect(steering.allowedFrom.contains(state))
            #expect(target == state || OperationMachine.permits(from: state, to: target))
        case .refused(let why):
            #expect(!steering.allowedFrom.contains(state))
            #expect(!why.isEmpty)
        }
    }

    @Test(arguments: OperationState.allCases) func whatIsAllowedIsWhatIsNotRefused(_ state: OperationState) {
        let commands = OperationSteering.allowed(on: operation(.put, state: state))
        #expect(commands == OperationSteering.allCases.filter { $0.allowedFrom.contains(state) })
    }

    @Test(arguments: [OperationState.inflight, .delivered, .cancelled, .superseded])
    func whatIsUnderWayOrOverIsLeftAlone(_ state: OperationState) {
        for steering in OperationSteering.allCases { #expect(!steering.allowedFrom.contains(state)) }
    }

    @Test func cancelSaysWhatItCannotPromise() {
        let unsent = OperationSteering.cancel.verdict(on: operation(state: .pending, firstSentAt: nil))
        #expect(unsent == .allowed(state: .cancelled, reason: .cancelled, warning: nil))
        guard case .allowed(_, _, let warning) = OperationSteering.cancel.verdict(on: operation(state: .pending)) else {
            Issue.record("a pending operation must be cancellable")
            return
        }
        #expect(warning?.contains("may have applied") == true)
    }

    /// A refusal is stored under its key; what may have taken effect keeps the key that says so.
    @Test func aRetriedRefusalGetsANewKey() {
        for (state, reason, isRenewed) in [
            (.dead, .rejected, true), (.dead, .tooOld, true), (.uncertain, .rejected, true), (.conflicted, .editDelete, true),
            (.dead, .exhausted, false), (.dead, .expired, false), (.dead, .damaged, false), (.uncertain, .lostAnswer, false),
            (.uncertain, .redirected, false), (.parked, .auth, false), (.pending, nil, false),
        ] as [(OperationState, OperationReason?, Bool)] {
            var row = operation(state: state)
            row.reason = reason
            #expect(OperationSteering.renewsKey(of: row) == isRenewed, "\(state) \(String(describing: reason))")
        }
        var lost = operation(.put, state: .conflicted)
        lost.lostAt = noon
        #expect(!OperationSteering.renewsKey(of: lost))
    }

    @Test func retryOfALostPostWarns() {
        let post = OperationSteering.retry.verdict(on: operation(.post, state: .uncertain))
        guard case .allowed(.pending, nil, let warning?) = post else {
            Issue.record("\(post)")
            return
        }
        #expect(warning.contains("twice"))
        let put = OperationSteering.retry.verdict(on: operation(.put, state: .uncertain))
        #expect(put == .allowed(state: .pending, reason: nil, warning: nil))
    }

    @Test(arguments: [
        (HTTPRequest.Method.post, OperationState.pending, false), (.put, .pending, true), (.post, .dead, true), (.post, .parked, true),
    ])
    func anEditInDoubtIsRefusedWhereItCouldDoItTwice(_ method: HTTPRequest.Method, _ state: OperationState, _ isAllowed: Bool) {
        switch OperationSteering.edit.verdict(on: operation(method, state: state), isInDoubt: true) {
        case .allowed(.superseded, .edited, let warning): #expect(isAllowed && warning?.contains("may have applied") == true)
        case .refused(let why): #expect(!isAllowed && why.contains("earlier attempt"))
        case let verdict: Issue.record("\(verdict)")
        }
        let sure = OperationSteering.edit.verdict(on: operation(method, state: state, firstSentAt: nil))
        #expect(sure == .allowed(state: .superseded, reason: .edited, warning: nil))
    }
}
