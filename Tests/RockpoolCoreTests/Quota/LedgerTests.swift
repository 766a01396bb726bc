// The account of a directory, line by line.
import Testing

@testable import RockpoolCore

@Suite struct LedgerTests {
    private func ledger(used: Int64 = 0, limit: Int64 = 1000) -> Ledger {
        var ledger = Ledger(limit: limit)
        ledger.measured(used: used)
        return ledger
    }

    @Test func reserveSettleRemove() {
        var ledger = ledger()
        #expect(ledger.reserve(600) == .granted)
        #expect((ledger.used, ledger.reserved) == (0, 600))
        #expect(ledger.reserve(401) == .refused)
        #expect(ledger.reserve(400) == .granted)
        ledger.settle(reserved: 600, actual: 512)
        #expect((ledger.used, ledger.reserved) == (512, 400))
        ledger.release(400)
        #expect((ledger.used, ledger.reserved) == (512, 0))
        ledger.remove(12)
        #expect(ledger.used == 500)
    }

    @Test(arguments: [
        (900, 100, Ledger.Verdict.granted), (900, 101, .evict(bytes: 101)), (1000, 1, .evict(bytes: 101)), (950, 500, .evict(bytes: 550)),
        (100, 1000, .evict(bytes: 100)), (0, 1000, .granted), (0, 1001, .refused), (1000, 1001, .refused), (500, 0, .granted),
        (500, -5, .granted),
        (1000, .max, .refused), (2000, 100, .evict(bytes: 1200)),
    ])
    func verdicts(used: Int64, bytes: Int64, expected: Ledger.Verdict) {
        var ledger = ledger(used: used)
        #expect(ledger.reserve(bytes) == expected)
        #expect(ledger.reserved == (expected == .granted ? max(0, bytes) : 0))
    }

    @Test func whatIsReservedCannotBeEvicted() {
        var ledger = ledger(used: 300)
        #expect(ledger.reserve(700) == .granted)
        #expect(ledger.reserve(300) == .evict(bytes: 300))
        #expect(ledger.reserve(301) == .refused)
        ledger.remove(300)
        #expect(ledger.reserve(300) == .granted)
        #expect(ledger.used + ledger.reserved == ledger.limit)
    }

    @Test(arguments: [(0, 0), (900, 0), (950, 0), (951, 51), (1000, 100), (2000, 1100)])
    func goal(used: Int64, expected: Int64) {
        #expect(ledger(used: used).evictionGoal == expected)
    }

    @Test func reservationsCountTowardTheGoal() {
        var ledger = ledger(used: 20)
        #expect(ledger.reserve(980) == .granted)
        #expect(ledger.evictionGoal == 20)
        ledger.limit = 100
        #expect(ledger.reserve(1) == .refused)
    }

    @Test func sumsNeverGoBelowZeroOrPastTheEnd() {
        var ledger = ledger(used: 10, limit: .max)
        ledger.remove(.max)
        ledger.release(5)
        ledger.settle(reserved: -5, actual: -5)
        #expect((ledger.used, ledger.reserved) == (0, 0))
        #expect(ledger.reserve(.max) == .granted)
        ledger.settle(reserved: .max, actual: .max)
        ledger.settle(reserved: 0, actual: .max)
        #expect(ledger.used == .max)
        #expect(Ledger(limit: -1).limit == 0)
    }
}

@Suite struct EvictionOrderTests {
    private func plan(_ goal: Int64, _ usage: [String: Int64]) -> [String] {
        EvictionOrder.plan(goal: goal, usage: usage, categories: Category.builtIn, limit: 1000).map { "\($0.category) \($0.bytes)" }
    }

    @Test(
        arguments: [
            (0, ["assets": 900], []), (100, [:], []), (100, ["assets": 800], ["assets 100"]),
            (150, ["assets": 800, "important": 200], ["assets 100", "assets 50"]),
            (100, ["ephemeral": 100, "assets": 720], ["ephemeral 50", "assets 20", "assets 30"]),
            (300, ["assets": 100, "important": 500, "critical": 400], ["assets 100", "important 200"]),
            (900, ["assets": 100, "important": 500, "critical": 400], ["assets 100", "important 300"]),
            (900, ["critical": 600], ["critical 200"]), (50, ["gone": 30, "assets": 900], ["gone 30", "assets 20"]),
            (-5, ["assets": 900], []),
        ] as [(Int64, [String: Int64], [String])])
    func steps(goal: Int64, usage: [String: Int64], expected: [String]) {
        #expect(plan(goal, usage) == expected)
    }
}
