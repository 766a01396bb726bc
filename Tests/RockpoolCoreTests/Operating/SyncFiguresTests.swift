// The figures of synchronization (docs/reference/admin-api.md#status).
import RockpoolCore
import Testing

@Suite struct SyncFiguresTests {
    @Test func nothingIsClaimedBeforeTheFirst() {
        let none = SyncFigures()
        let ratios = [none.successRatio, none.conflictRatio, none.meanSeconds, none.inTimeRatio, none.offlineReadRatio]
        #expect(ratios.allSatisfy { $0 == nil })
    }

    @Test func sharesAreOfWhatHasEnded() {
        var figures = SyncFigures()
        (figures.delivered, figures.refused, figures.conflicts) = (198, 2, 4)
        (figures.offlineReads, figures.offlineMisses) = (19, 1)
        for seconds in [0.05, 5, 5.5, 60] { figures.seconds.record(seconds) }
        #expect(figures.successRatio == 0.99 && figures.conflictRatio == 0.02 && figures.offlineReadRatio == 0.95)
        #expect(figures.inTimeRatio == 0.5, "five seconds are in time")
        #expect(figures.meanSeconds == (0.05 + 5 + 5.5 + 60) / 4)
        var both = figures.seconds
        both.add(figures.seconds)
        #expect(both.count == 8 && both.sum == 2 * figures.seconds.sum)
    }
}
