// A failing disk is retried periodically, and its recovery is detected without a restart (docs/storage.md#faults).
import RockpoolCore
import Testing

@Suite struct StorageHealthTests {
    let start = Timestamp(seconds: 1_800_000_000)

    @Test(arguments: [(StorageHealth.Fault.full, TimeSpan.seconds(5)), (.failing, .minutes(1)), (.readOnly, .minutes(1))])
    func oneWriteAPauseIsTriedUntilOneIsDone(fault: StorageHealth.Fault, pause: TimeSpan) {
        var health = StorageHealth()
        let changes = [
            health.failed(fault, detail: "x", now: start), health.failed(fault, detail: "y", now: start),
        ]
        #expect(changes == [.fell(fault), .none])
        #expect(health.trouble?.since == start && health.trouble?.detail == "y")
        let tries = [pause + .milliseconds(-1), pause, pause].map { health.mayWrite(now: start + $0) }
        #expect(tries == [false, true, false])
        let ends = [health.wrote(), health.wrote()]
        #expect(ends == [.recovered, .none] && health.trouble == nil)
        let isWell = health.mayWrite(now: start)
        #expect(isWell)
    }

    @Test func damageStays() {
        var health = StorageHealth()
        let changes = [
            health.failed(.damaged, detail: "page 3", now: start), health.wrote(), health.failed(.full, detail: "", now: start),
        ]
        #expect(changes == [.fell(.damaged), .none, .none])
        let mayWrite = health.mayWrite(now: start + .days(400))
        #expect(!mayWrite && health.trouble?.fault == .damaged)
    }

    @Test func aClockSetBackDoesNotProlongThePause() {
        var health = StorageHealth()
        _ = health.failed(.failing, detail: "", now: start)
        let mayWrite = health.mayWrite(now: start + .days(-1))
        #expect(mayWrite)
    }
}

@Suite struct ClockTrustTests {
    let start = Timestamp(seconds: 1_800_000_000)

    @Test(arguments: [(nil, false), (TimeSpan.hours(24), false), (.hours(25), true), (.days(-30), false)])
    func atTheStartTheLastRunTells(gap: TimeSpan?, isDoubtful: Bool) {
        let trust = ClockTrust(lastSeen: gap.map { start + .milliseconds(-$0.milliseconds) }, wall: start, steady: .seconds(7))
        #expect((trust.doubt != nil) == isDoubtful)
    }

    /// Returns the trust in the clock after each observation; times are days on both clocks.
    private func beliefs(_ looks: [(wall: Int64, steady: Int64)], _ trust: inout ClockTrust) -> [Bool] {
        looks.map { trust.observe(wall: start + .days($0.wall), steady: .days($0.steady)) }
    }

    @Test func aJumpAheadIsDoubtedUntilAnUpstreamConfirmsIt() {
        var trust = ClockTrust(lastSeen: nil, wall: start, steady: .zero)
        // One day more than on the steady clock is accepted; ten days are not, however often they are observed.
        let believed = beliefs([(10, 10), (11, 10), (21, 10), (22, 11)], &trust)
        #expect(believed == [true, true, false, false])
        #expect(trust.doubt == .days(10))
        trust.confirm(start + .days(11), wall: start + .days(22))
        #expect(trust.doubt != nil)
        trust.confirm(start + .days(21), wall: start + .days(22))
        #expect(trust.doubt == nil)
    }

    @Test func aClockSetBackToWhereItWasIsBelieved() {
        var trust = ClockTrust(lastSeen: nil, wall: start, steady: .zero)
        let believed = beliefs([(400, 0), (0, 0)], &trust)
        #expect(believed == [false, true])
    }

    @Test func aJumpBackAloneIsNoDoubt() {
        var trust = ClockTrust(lastSeen: nil, wall: start, steady: .zero)
        let believed = beliefs([(-400, 0)], &trust)
        #expect(believed == [true])
    }
}
