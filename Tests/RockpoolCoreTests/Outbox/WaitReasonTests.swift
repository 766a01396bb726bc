// The reason for which an operation waits, and its announced purge (docs/outbox.md#retention, docs/outbox.md#waiting).
import RockpoolCore
import Testing

@Suite struct WaitReasonTests {
    private let link = OperationLink(id: "secret-id", state: .dead, reason: .rejected, method: "PUT", url: "https://a/")
    private let there = Reachability(now: noon)
    private var away: Reachability {
        var machine = Reachability(now: noon)
        _ = machine.record(.mode(.offline), now: noon)
        return machine
    }

    private func reason(
        _ state: OperationState, _ standing: OperationRelations = .init(), next: TimeSpan = .zero, away: Bool = false
    ) -> WaitReason? {
        var operation = operation(state: state)
        operation.nextAttemptAt = noon + next
        return WaitReason(operation, standing: standing, reachability: away ? self.away : there, now: noon)
    }

    @Test(arguments: OperationState.allCases) func whatHasEndedWaitsForNothing(_ state: OperationState) {
        #expect((reason(state) == nil) == state.hasEnded)
    }

    @Test func theFirstThatHoldsIsSaid() {
        let needed = OperationRelations(dependsOn: [link])
        let both = OperationRelations(dependsOn: [link], ahead: OperationLink(id: "b", state: .pending, method: "PUT", url: "https://a/"))
        #expect(reason(.pending, both, away: true) == both.ahead.map { .lane($0) })
        #expect(reason(.pending, needed, away: true) == .dependency(link))
        #expect(reason(.pending, next: .seconds(5), away: true) == .upstream(name: "notes", .offline, nil))
        #expect(reason(.pending, next: .seconds(5)) == .time(noon + .seconds(5), lastError: nil))
        #expect(reason(.pending) == .turn)
        #expect(reason(.inflight, both) == .answer && reason(.uncertain, both) == .evidence)
        #expect(WaitReason(operation(state: .pending), standing: .init(), reachability: nil, now: noon)?.words.contains("declare") == true)
    }

    @Test func anAttemptThatMayStillRunIsSaid() {
        let held = WaitReason(operation(state: .pending), standing: .init(), reachability: there, heldUntil: noon + .seconds(30), now: noon)
        #expect(held == .hold(until: noon + .seconds(30)))
        #expect(held?.words.hasSuffix("it is sent at \(RFC3339.format(noon + .seconds(30)))") == true)
        #expect(WaitReason(operation(state: .pending), standing: .init(), reachability: there, heldUntil: noon, now: noon) == .turn)
    }

    @Test func aDeliveredDependencyHoldsNothing() {
        let standing = OperationRelations(dependsOn: [OperationLink(id: "a", state: .delivered, method: "POST", url: "https://a/")])
        #expect(reason(.pending, standing) == .turn)
    }

    @Test func wordsNameNoOtherOperation() {
        for reason in [reason(.pending, .init(ahead: link)), reason(.pending, .init(dependsOn: [link]))] {
            #expect(reason?.words.contains("secret-id") == false && reason?.words.contains("has failed") == true)
        }
    }

    @Test func parkedForACredentialSaysSo() {
        var parked = operation(state: .parked)
        parked.reason = .auth
        #expect(WaitReason(parked, standing: .init(), reachability: there, now: noon) == .time(parked.nextAttemptAt, lastError: nil))
        parked.principal = "ann"
        #expect(WaitReason(parked, standing: .init(), reachability: there, now: noon) == .credential)
        parked.reason = .paused
        #expect(WaitReason(parked, standing: .init(), reachability: there, now: noon) != .credential)
    }

    @Test(arguments: [
        (OperationState.dead, Int64(25), true), (.dead, 24, false), (.conflicted, 25, true), (.cancelled, 29, false),
        (.superseded, 29, false),
        (.delivered, 7, false), (.pending, 99, false),
    ])
    func fiveDaysOfNotice(_ state: OperationState, _ days: Int64, _ isAnnounced: Bool) {
        let retention = Retention(failed: .days(30))
        let moment = retention.announcedPurge(state, endedAt: noon, now: noon + .days(days))
        #expect(moment == (isAnnounced ? noon + .days(30) : nil))
        #expect(retention.announcedPurge(state, endedAt: nil, now: noon + .days(99)) == nil)
    }

    @Test(arguments: OperationState.allCases) func whatHasNotEndedNeverGoes(_ state: OperationState) {
        let mayGo: Set<OperationState> = [.delivered, .dead, .conflicted, .cancelled, .superseded]
        #expect((Retention(failed: .days(30)).purgeAt(state, endedAt: noon) != nil) == mayGo.contains(state))
    }
}
