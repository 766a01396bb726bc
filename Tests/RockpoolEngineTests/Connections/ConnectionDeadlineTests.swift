// The time limit of each phase of a client connection (docs/security-model.md#slow-clients).
import NIOCore
import RockpoolCore
import Testing

@testable import RockpoolEngine

struct ConnectionDeadlineTests {
    private let start = NIODeadline.uptimeNanoseconds(1_000_000_000_000)
    private var deadline: ConnectionDeadline {
        var timeouts = ClientTimeouts()
        (timeouts.head, timeouts.body, timeouts.idle) = (.seconds(10), .seconds(30), .seconds(60))
        return ConnectionDeadline(timeouts: timeouts, bodyRate: .kib(1), now: start)
    }

    @Test func aNewConnectionIsIdle() { #expect(deadline.phase == .idle && deadline.at == start + .seconds(60)) }

    @Test(arguments: [
        (ConnectionDeadline.Phase.idle, TimeAmount.seconds(60)), (.head, .seconds(10)), (.body, .seconds(10)), (.writing, .seconds(60)),
        (.lingering, .seconds(1)),
    ])
    func everyPhaseHasItsLimit(phase: ConnectionDeadline.Phase, limit: TimeAmount) {
        var deadline = deadline
        deadline.enter(.answering, now: start)
        deadline.enter(phase, now: start + .seconds(5))
        #expect(deadline.phase == phase && deadline.at == start + .seconds(5) + limit)
    }

    @Test(arguments: [ConnectionDeadline.Phase.idle, .writing])
    func progressRenewsALimit(phase: ConnectionDeadline.Phase) {
        var deadline = deadline
        deadline.enter(phase, now: start)
        let first = deadline.at
        deadline.enter(phase, now: start + .seconds(7))
        #expect(deadline.at == first + .seconds(7))
    }

    @Test func aHeadsLimitIsForTheWholeOfIt() {
        var deadline = deadline
        deadline.enter(.head, now: start)
        deadline.enter(.head, now: start + .seconds(9))
        #expect(deadline.at == start + .seconds(10))
        deadline.enter(.idle, now: start + .seconds(9))
        deadline.enter(.head, now: start + .seconds(9))
        #expect(deadline.at == start + .seconds(19), "the next head has its own limit")
    }

    /// The minimum rate is 1 KiB/s after the ten seconds allowed for a head.
    @Test(arguments: [(1024, true), (1023, false)])
    func aBodyMustComeAtItsRate(bytesPerSecond: Int, isFastEnough: Bool) {
        var deadline = deadline
        deadline.enter(.body, now: start)
        var now = start
        for _ in 0..<20_000 where deadline.at >= now {
            now = now + .seconds(1)
            if deadline.at >= now { deadline.receive(bytesPerSecond, now: now) }
        }
        #expect((deadline.at >= now) == isFastEnough)
    }

    @Test func aBodyThatStopsIsCutOffByTheLongestWait() {
        var deadline = deadline
        deadline.enter(.body, now: start)
        deadline.receive(1 << 40, now: start + .seconds(1))
        #expect(deadline.at == start + .seconds(31), "after a burst the client may pause for the longest wait, not for a day")
        var patient = ClientTimeouts()
        (patient.head, patient.body) = (.seconds(60), .seconds(30))
        var slow = ConnectionDeadline(timeouts: patient, bodyRate: .kib(1), now: start)
        slow.enter(.body, now: start)
        #expect(slow.at == start + .seconds(30))
    }

    @Test func theClientPaysNothingForOurOwnPauses() {
        var deadline = deadline
        deadline.enter(.body, now: start)
        deadline.forgive(now: start + .seconds(9))
        #expect(deadline.at == start + .seconds(19))
    }

    @Test func ourOwnAnswerHasNoLimitOfTheClients() {
        var deadline = deadline
        deadline.enter(.answering, now: start)
        #expect(deadline.at > start + .hours(24))
    }
}
