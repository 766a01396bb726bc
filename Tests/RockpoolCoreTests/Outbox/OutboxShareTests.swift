// The queue share charged for a write, and the announced purge of an unproved one (docs/reference/behaviour.md#shares *queue shares*).
import RockpoolCore
import Testing

@Suite struct OutboxShareTests {
    @Test(
        arguments: [
            ("anna", true, true, .principal), ("anna", true, false, .principal), ("anna", false, true, .unproved),
            ("anna", false, false, .unproved), (nil, false, true, .unproved), (nil, false, false, .nobody), (nil, true, true, .unproved),
        ] as [(String?, Bool, Bool, OutboxShare)])
    func whoseItIs(_ principal: String?, isProved: Bool, takesCredentials: Bool, share: OutboxShare) {
        #expect(OutboxShare(principal: principal, isProved: isProved, takesCredentials: takesCredentials) == share)
    }

    @Test func halfForEachAndAnEighthForTheUnproved() {
        let settings = StorageSettings()
        #expect(OutboxShare.allCases.map { $0.bytes(of: 8_000_000, settings: settings) } == [4_000_000, 4_000_000, 960_000])
        #expect(OutboxShare.principal.bytes(of: .max, settings: settings) == .max / 100 * 50 + 3)
    }

    @Test func theWordsNameTheSetting() {
        #expect(OutboxShare.principal.words.contains("storage.principal_share"))
        #expect(OutboxShare.nobody.words.contains("storage.principal_share"))
        #expect(OutboxShare.unproved.words.contains("storage.unproved_share"))
    }

    // MARK: the time

    @Test(arguments: [
        (OperationState.dead, Int64(20), true), (.dead, 19, false), (.parked, 20, true), (.parked, 19, false), (.pending, 999, false),
        (.inflight, 999, false), (.uncertain, 999, false), (.conflicted, 999, false), (.delivered, 999, false),
    ])
    func anUnprovedOneIsAnnouncedFourHoursBefore(_ state: OperationState, _ hours: Int64, _ isAnnounced: Bool) {
        let retention = Retention(failed: .days(365), unproved: .hours(24))
        var waiting = operation(state: state)
        waiting.endedAt = state == .dead ? noon : nil
        #expect(retention.announcedPurge(of: waiting, now: noon + .hours(hours)) == nil)
        waiting.isUnproved = true
        #expect(retention.announcedPurge(of: waiting, now: noon + .hours(hours)) == (isAnnounced ? noon + .hours(24) : nil))
        waiting.lostAt = noon
        #expect(retention.announcedPurge(of: waiting, now: noon + .hours(hours)) == nil, "it may have taken effect")
    }

    @Test func theSoonerOfBothTimesHolds() {
        var waiting = operation(state: .dead)
        (waiting.isUnproved, waiting.endedAt) = (true, noon)
        for (failed, unproved) in [(TimeSpan.days(30), TimeSpan.days(60)), (.days(60), .days(30))] {
            let retention = Retention(failed: failed, unproved: unproved)
            #expect(retention.announcedPurge(of: waiting, now: noon + .days(59)) == noon + .days(30))
        }
        #expect(Retention(failed: .forever, unproved: .forever).announcedPurge(of: waiting, now: noon + .days(9999)) == nil)
    }
}
