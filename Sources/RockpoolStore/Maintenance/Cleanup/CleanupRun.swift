// The state of one cleanup run: its report grows, and a failing step fails alone (docs/storage.md#cleanup).
import RockpoolCore
import Synchronization

/// The report of a run in progress.
final class CleanupRun: Sendable {
    let options: CleanupOptions
    /// True when the clock is in doubt: no entry or operation is removed for its age.
    let pausesExpiry: Bool
    private let state: Mutex<CleanupReport>
    /// Bytes of removed rows, with their small bodies: pages that are free now, or would be after a real run.
    private let rowBytes = Mutex<Int64>(0)
    /// Bytes of files that a dry run leaves and a real run would unlink.
    private let fileBytes = Mutex<Int64>(0)
    private let began = ContinuousClock.now
    private let step = Mutex<CleanupStep>(.cache)
    private let watch: CleanupWatch

    init(_ options: CleanupOptions, startedAt: Timestamp, pausesExpiry: Bool = false, watch: @escaping CleanupWatch = { _ in }) {
        self.options = options
        self.pausesExpiry = pausesExpiry
        self.watch = watch
        var report = CleanupReport(options, startedAt: startedAt)
        if pausesExpiry { report.notes = ["the clock has jumped ahead and no upstream has confirmed it: nothing went for its age"] }
        state = Mutex(report)
    }

    /// The report up to now.
    var report: CleanupReport {
        state.withLock { report in
            report.seconds = (ContinuousClock.now - began) / .seconds(1)
            return report
        }
    }

    var freedRowBytes: Int64 { rowBytes.withLock(\.self) }

    /// Records removed entries and the reason.
    func took(_ rows: [EvictionCandidate], as reason: String) {
        freeRows(rows.reduce(0) { $0 + $1.inlineBytes })
        note { report in
            for row in rows {
                report.removed.add(RemovalCount(entries: 1, bytes: row.bytes), of: row.category, as: reason)
                guard let count = report.list?.count, count < CleanupReport.listLimit else { continue }
                report.list?.append(CleanedEntry(key: row.key, category: row.category, bytes: row.bytes, reason: reason))
            }
        }
        tell()
    }

    func freeRows(_ bytes: Int64) { rowBytes.withLock { $0 += bytes } }

    func freeFiles(_ bytes: Int64) { fileBytes.withLock { $0 += bytes } }

    /// Returns the size that a directory would have after a real run: less the files that it removes, with the database as its pages are
    /// then and an empty log.
    /// - Parameter database: path of the database in the directory.
    func foreseen(_ size: Int64, database: String) -> Int64 {
        let (vacuum, kept) = (state.withLock(\.vacuum), size - fileBytes.withLock(\.self))
        guard vacuum.pagesBefore > 0 else { return max(0, kept) }
        let before = [database, database + "-wal"].reduce(0) { $0 + (FileStatus.of($1)?.allocated ?? 0) }
        return max(0, kept - before + Int64(vacuum.pagesAfter) * StoreDatabase.pageSize)
    }

    func note(_ change: (inout CleanupReport) -> Void) { state.withLock { change(&$0) } }

    /// Runs one step; records an error in the report and returns, so that the next step runs.
    func attempt(_ step: CleanupStep, _ body: () async throws -> Void) async {
        self.step.withLock { $0 = step }
        tell()
        do { try await body() } catch { note { $0.errors.append("\(step.rawValue): \(error)") } }
    }

    private func tell() {
        let removed = state.withLock(\.removed.total)
        watch(CleanupProgress(step.withLock(\.self), removed: removed))
    }
}
