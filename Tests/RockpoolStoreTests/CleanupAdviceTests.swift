// The words about what a cleanup keeps (docs/storage.md#cleanup).
import RockpoolCore
import Testing

@testable import RockpoolStore

@Suite struct CleanupAdviceTests {
    private func report(
        _ kept: [(category: String, reason: String, bytes: Int64)], aggressive: Bool = false, operations: Int = 0, waiting: Int = 0
    ) -> CleanupReport {
        var report = CleanupReport(CleanupOptions(aggressive: aggressive, dryRun: true), startedAt: .distantPast)
        for part in kept { report.kept.add(RemovalCount(entries: 1, bytes: part.bytes), of: part.category, as: part.reason) }
        (report.operations.kept, report.operations.waiting) = (operations, waiting)
        return report
    }

    @Test func theLargestPartComesFirstWithItsCommand() {
        let lines = CleanupAdvice.lines(
            of: report([("assets", "notDue", 8_000_000), ("important", "notDue", 200_000), ("critical", "pinned", 9_000_000)]))
        #expect(lines.count == 3)
        #expect(lines[0].hasPrefix("pinned: 9.0 MB") && lines[0].contains("rockpool cache unpin"))
        #expect(lines[1].contains("8.0 MB of the category assets") && lines[1].contains("storage-cleanup --aggressive"))
        #expect(lines[2].hasPrefix("nothing more is removed: 8.2 MB are fresh") && lines[2].contains("9.0 MB are pinned"))
    }

    @Test func anAggressiveCleanupIsNotAdvisedTwice() {
        let lines = CleanupAdvice.lines(of: report([("assets", "notDue", 8_000_000)], aggressive: true))
        #expect(lines[0].contains("rockpool cache purge --category assets"))
    }

    @Test func anEmptyStoreSaysSo() {
        #expect(CleanupAdvice.lines(of: report([])) == ["nothing more is stored"])
    }

    /// What was delivered does not wait, and what waits is not kept as history.
    @Test(arguments: [
        (1, 0, "1 ended write is kept for its time"), (1, 1, "1 write waits"),
        (3, 1, "1 write waits; 2 ended writes are kept for their time"),
    ])
    func whatWaitsAndWhatIsKeptIsSaidApart(kept: Int, waiting: Int, words: String) {
        #expect(CleanupAdvice.lines(of: report([], operations: kept, waiting: waiting)) == ["nothing more is removed: \(words)"])
    }
}
