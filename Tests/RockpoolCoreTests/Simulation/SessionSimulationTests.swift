// The session guarantees of one client on the pure machines, by seed (docs/outbox.md#session-guarantees). The names are those of Terry et
// al. (1994): read your writes, monotonic reads, writes follow reads, monotonic writes.
//
// `SIM_RUNS` sets the number of seeds, `SIM_FROM` the first; `SIM_SESSION=n swift test --filter SessionSimulation` replays one with its
// trace.
import FoundationEssentials
import RockpoolCore
import Testing

private func setting(_ name: String) -> UInt64? { ProcessInfo.processInfo.environment[name].flatMap { UInt64($0) } }

@Suite struct SessionSimulationTests {
    /// - Read your writes, monotonic reads: every read equals the client's own view, item by item and in the list.
    /// - Writes follow reads: no write meets a 412, although each carries the version that its client could have seen.
    /// - Monotonic writes: effects come in the order of acceptance (P4), each once (P2).
    /// - One client never conflicts with itself; at the end the upstream has its view, so no update is lost.
    @Test(arguments: 0..<SimulationTests.shards) func oneClientSeesItsOwnWorld(_ shard: UInt64) {
        var sum = Session()
        var (crashes, faults, failures) = (0, 0, 0)
        for seed in SimulationTests.first..<SimulationTests.first + SimulationTests.runs where seed % SimulationTests.shards == shard {
            var world = World(seed: seed, isSession: true)
            let violations = world.run()
            sum.reads += world.ghost.session.reads
            sum.lists += world.ghost.session.lists
            sum.live += world.ghost.session.live
            sum.queued += world.ghost.session.queued
            crashes += world.ghost.crashes
            faults += world.ghost.faults
            guard let violation = violations.first else { continue }
            failures += 1
            Issue.record("seed \(seed): \(violation)")
            if failures == 20 { break }
        }
        print(
            "sessions, shard \(shard): \(sum.reads) reads and \(sum.lists) lists compared, \(sum.live) live writes, \(sum.queued) queued, "
                + "\(crashes) crashes, \(faults) faults, \(failures) failing seeds")
        #expect(sum.reads > 100 && sum.lists > 10 && sum.live > 50 && sum.queued > 50)
    }

    @Test(.enabled(if: setting("SIM_SESSION") != nil)) func oneSessionWithItsTrace() {
        var world = World(seed: setting("SIM_SESSION") ?? 0, isSession: true, tracing: true)
        let violations = world.run()
        for line in world.trace?.lines ?? [] { print(line) }
        #expect(violations == [])
    }

    /// Each wrong shell breaks the guarantee that it should.
    @Test(arguments: [
        (Plan.Sabotage.readsWithoutOverlay, ["read your writes", "monotonic reads"]),
        (.forgetsLiveEffects, ["read your writes", "monotonic reads", "one client never conflicts with itself"]),
        (.conditionsOfTheFirstVersion, ["one client never conflicts with itself"]),
    ]) func aWrongShellBreaksItsGuarantee(_ sabotage: Plan.Sabotage, _ guarantees: [String]) {
        for seed in UInt64(1)..<300 {
            var world = World(seed: seed, sabotage: sabotage, isSession: true)
            guard let violation = world.run().first else { continue }
            print("sessions: \(sabotage) is caught at seed \(seed): \(violation)")
            #expect(guarantees.contains { violation.hasPrefix($0) }, "\(violation)")
            return
        }
        Issue.record("\(sabotage) was not detected")
    }
}
