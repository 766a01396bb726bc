// How long a client may keep a connection waiting in each phase (security.md §4 *slow clients*).
import NIOCore
import RockpoolCore
import Testing

@testable import RockpoolNetwork

struct ConnectionDeadlineTests {
    private let start = NIODeadline.uptimeNanoseconds(1_000_000_000_000)
    private var deadline: ConnectionDeadline {
        var timeouts = ClientTimeouts()
        (timeouts.head, timeouts.body, timeouts.idle) = (.seconds(10), .seconds(30), .seconds(60))
        return ConnectionDeadline(timeouts: timeouts, now: start)
    }

    @Test func aNewConnectionIsIdle() { #expect(deadline.phase == .idle && deadline.at == start + .seconds(60)) }

    @Test(arguments: [
        (ConnectionDeadline.Phase.idle, TimeAmount.seconds(60)), (.head, .seconds(10)), (.body, .seconds(30)), (.writing, .seconds(60)),
        (.lingering, .seconds(1)),
    ])
    func everyPhaseHasItsLimit(phase: ConnectionDeadline.Phase, limit: TimeAmount) {
        var deadline = deadline
        deadline.enter(.answering, now: start)
        deadline.enter(phase, now: start + .seconds(5))
        #expect(deadline.phase == phase && deadline.at == start + .seconds(5) + limit)
    }

    @Test(arguments: [ConnectionDeadline.Phase.body, .idle, .writing])
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
        #expect(deadline.at == start + .seconds(19), "the next head has its own")
    }

    @Test func ourOwnAnswerHasNoLimitOfTheClients() {
        var deadline = deadline
        deadline.enter(.answering, now: start)
        #expect(deadline.at > start + .hours(24))
    }
}
