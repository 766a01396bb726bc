// Waiting for events: none is missed, and no wait exceeds its deadline.
import RockpoolCore
import RockpoolEngine
import RockpoolTesting
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1)))
struct EngineEventsTests {
    private let events = EngineEvents()
    private var soon: ContinuousClock.Instant { .now + .milliseconds(20) }
    private var late: ContinuousClock.Instant { .now + .seconds(30) }

    @Test func anEventBetweenReadingTheVersionAndWaitingIsNotLost() async {
        let version = events.version
        events.wake()
        #expect(await events.change(after: version, before: late))
    }

    @Test func anEventWakesEveryWaiter() async throws {
        let version = events.version
        let waiters = (0..<5).map { _ in Task { [late] in await events.change(after: version, before: late) } }
        await Task.yield()
        events.tell(.storage(detail: "full"))
        for waiter in waiters { #expect(await waiter.value) }
    }

    @Test func withoutAnEventTheDeadlineEndsIt() async {
        let start = ContinuousClock.now
        #expect(await !events.change(after: events.version, before: soon))
        #expect(ContinuousClock.now - start >= .milliseconds(15))
    }

    @Test func aDeadlineThatHasPassedIsNotWaitedFor() async {
        #expect(await !events.change(after: events.version, before: .now - .seconds(1)))
    }

    @Test func cancellationEndsIt() async {
        let waiter = Task { [late] in await events.change(after: events.version, before: late) }
        waiter.cancel()
        #expect(await !waiter.value)
    }

    @Test func listenersHearEveryEventInOrder() {
        let heard = Mutex<[String]>([])
        events.listen { event in
            guard case .operation(let id, let state, _) = event else { return }
            heard.withLock { $0.append("\(id) \(state)") }
        }
        events.tell(.operation(id: "1", state: .pending))
        events.wake()
        events.tell(.operation(id: "2", state: .delivered))
        #expect(heard.withLock { $0 } == ["1 pending", "2 delivered"])
    }

    @Test func theVersionGrowsWithEveryEvent() {
        let before = events.version
        events.wake()
        events.tell(.credential(principal: "p"))
        #expect(events.version == before + 2)
    }

    @Test func manyWakesAndWaitersLeaveNobodyBehind() async {
        await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<50 {
                let version = events.version
                group.addTask { [late] in await events.change(after: version, before: late) }
                events.wake()
            }
            for await woken in group { #expect(woken) }
        }
    }
}

struct StatisticsTests {
    private func counted(_ verdicts: [Trace.Verdict]) -> Statistics {
        let statistics = Statistics()
        for verdict in verdicts {
            var trace = Trace(method: "GET", url: "http://api.test/", startedAt: .distantPast)
            trace.verdict = verdict
            statistics.count(trace)
        }
        return statistics
    }

    @Test(
        arguments: [
            ([], 0.0), ([.miss], 0), ([.hit], 1), ([.hit, .miss], 0.5), ([.stale, .revalidated, .hit, .miss], 0.75),
            ([.hit, .pass, .queued, .refused, .failed], 1),
        ] as [([Trace.Verdict], Double)])
    func theHitRatioCountsReadsTheCacheWasAskedFor(verdicts: [Trace.Verdict], ratio: Double) {
        let statistics = counted(verdicts)
        #expect(statistics.hitRatio == ratio)
        #expect(statistics.total == verdicts.count)
    }

    @Test func everyVerdictHasItsOwnCount() {
        let statistics = counted(Trace.Verdict.allCases + [.hit])
        for verdict in Trace.Verdict.allCases { #expect(statistics[verdict] == (verdict == .hit ? 2 : 1)) }
    }

    @Test func aTraceKeepsItsStepsInOrder() {
        var trace = Trace(method: "GET", url: "http://api.test/", startedAt: .distantPast)
        #expect(trace.verdict == .pass && trace.steps.isEmpty)
        trace.record(.looked(candidates: 0))
        trace.record(.fetched(status: 200))
        trace.record(.stored)
        #expect(trace.steps == [.looked(candidates: 0), .fetched(status: 200), .stored])
    }
}
