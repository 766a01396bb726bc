// The disk usage ledger of a directory.
import Testing

@testable import RockpoolCore

@Suite struct LedgerTests {
    private func ledger(used: Int64 = 0, spare: Int64 = 0, limit: Int64 = 1000) -> Ledger {
        var ledger = Ledger(limit: limit)
        ledger.measured(used: used, spare: spare)
        return ledger
    }

    @Test func whatIsReservedIsHeldUntilItIsReleased() {
        var ledger = ledger()
        #expect(ledger.reserve(SpaceRequest(files: 600)) == .granted)
        #expect((ledger.used, ledger.reserved) == (0, 600))
        #expect(ledger.reserve(SpaceRequest(files: 401)) == .refused)
        #expect(ledger.reserve(SpaceRequest(files: 300, rows: 100)) == .granted)
        ledger.measured(used: 512)
        ledger.release(SpaceRequest(files: 600))
        #expect((ledger.used, ledger.reserved) == (512, 400))
        ledger.release(SpaceRequest(files: 300, rows: 100))
        #expect((ledger.used, ledger.reserved) == (512, 0))
    }

    @Test(arguments: [
        (900, 100, Ledger.Verdict.granted), (900, 101, .evict), (1000, 1, .evict), (950, 500, .evict), (100, 1000, .evict),
        (0, 1000, .granted), (0, 1001, .refused), (1000, 1001, .refused), (1000, 0, .granted), (500, -5, .granted), (1000, .max, .refused),
        (2000, 100, .evict),
    ])
    func verdicts(used: Int64, bytes: Int64, expected: Ledger.Verdict) {
        for room in [SpaceRequest(files: bytes), SpaceRequest(rows: bytes)] {
            var ledger = ledger(used: used)
            #expect(ledger.reserve(room) == expected)
            #expect(ledger.reserved == (expected == .granted ? max(0, bytes) : 0))
        }
    }

    @Test func whatIsReservedCannotBeEvicted() {
        var ledger = ledger(used: 300)
        #expect(ledger.reserve(SpaceRequest(files: 700)) == .granted)
        #expect(ledger.reserve(SpaceRequest(files: 300)) == .evict)
        #expect(ledger.reserve(SpaceRequest(files: 301)) == .refused)
        ledger.measured(used: 0)
        #expect(ledger.reserve(SpaceRequest(files: 300)) == .granted)
        #expect(ledger.used + ledger.reserved == ledger.limit)
    }

    @Test func rowsTakeFreePagesAndFilesDoNot() {
        var ledger = ledger(used: 800, spare: 200)
        // Half of a row's reservation is for the log.
        #expect(ledger.reserve(SpaceRequest(rows: 400)) == .granted)
        #expect(ledger.reserve(SpaceRequest(rows: 1)) == .evict)
        #expect(ledger.reserve(SpaceRequest(files: 1)) == .evict)
        #expect(ledger.missing(for: SpaceRequest(files: 1)) == 1 && ledger.missing(for: SpaceRequest()) == 0)
        // Half of the reservation is written: the rows take free pages, and releasing the reservation frees more than they took.
        ledger.measured(used: 800, spare: 150)
        ledger.release(SpaceRequest(rows: 200))
        #expect(ledger.missing(for: SpaceRequest(rows: 150)) == 0 && ledger.missing(for: SpaceRequest(rows: 151)) == 1)
        // Free pages returned to the file system are space for files.
        ledger.measured(used: 700, spare: 50)
        #expect(ledger.reserve(SpaceRequest(files: 150)) == .granted)
    }

    @Test func whatIsPromisedNeverPassesTheLimitHoweverItIsUsed() {
        var random = SeededGenerator(seed: 7625)
        for _ in 0..<2000 {
            var (used, spare) = (Int64.random(in: 0...1000, using: &random), Int64(0))
            spare = Int64.random(in: 0...used, using: &random)
            var ledger = ledger(used: used, spare: spare)
            var promises: [SpaceRequest] = []
            for _ in 0..<8 {
                let room = SpaceRequest(files: .random(in: 0...200, using: &random), rows: 2 * .random(in: 0...100, using: &random))
                if ledger.reserve(room) == .granted { promises.append(room) }
            }
            for room in promises {
                // Uses the full reservation: half of each row in the log, the other half from free pages first, then at the end of the
                // file.
                let fromSpare = min(spare, room.rows / 2)
                spare -= fromSpare
                used += room.files + room.rows - fromSpare
                ledger.measured(used: used, spare: spare)
                ledger.release(room)
                #expect(used <= 1000)
            }
        }
    }

    @Test(arguments: [(0, 0, false), (950, 0, false), (951, 0, true), (1000, 50, false), (1000, 49, true), (1001, 900, true)])
    func evictionIsDuePastTheSoftMarkOrTheLimit(used: Int64, spare: Int64, isDue: Bool) {
        #expect(ledger(used: used, spare: spare).isEvictionDue == isDue)
    }

    @Test(arguments: [
        (900, 0, 0, 0), (951, 0, 0, 51), (1000, 100, 0, 0), (1000, 50, 0, 50), (1000, 0, 60, 40), (1060, 0, 160, 60), (2000, 500, 0, 600),
    ])
    func whatGoesIsAllDownToTheLowMark(used: Int64, spare: Int64, leaving: Int64, expected: Int64) {
        #expect(ledger(used: used, spare: spare).shortfall(for: SpaceRequest(), leaving: leaving) == expected)
    }

    @Test func reservationsCountTowardWhatGoes() {
        var ledger = ledger(used: 20)
        #expect(ledger.reserve(SpaceRequest(files: 980)) == .granted)
        #expect(ledger.isEvictionDue && ledger.shortfall(for: SpaceRequest()) == 20)
        ledger.limit = 100
        #expect(ledger.reserve(SpaceRequest(files: 1)) == .refused)
    }

    @Test func sumsNeverGoBelowZeroOrPastTheEnd() {
        var ledger = ledger(used: 10, limit: .max)
        ledger.measured(used: -1, spare: 5)
        ledger.release(SpaceRequest(files: 5, rows: .max))
        #expect((ledger.used, ledger.spare, ledger.reserved) == (0, 0, 0))
        #expect(ledger.reserve(SpaceRequest(files: .max)) == .granted)
        #expect(ledger.reserve(SpaceRequest(files: .max, rows: .max)) == .granted)
        #expect(ledger.reserved == .max)
        #expect(Ledger(limit: -1).limit == 0)
    }
}

@Suite struct EvictionOrderTests {
    private func plan(_ goal: Int64, _ usage: [String: Int64]) -> [String] {
        EvictionOrder.plan(goal: goal, usage: usage, categories: CacheCategory.builtIn, limit: 1000).map { "\($0.category) \($0.bytes)" }
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
