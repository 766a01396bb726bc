// The state of one scrub: its report grows, and a failing step fails alone.
import RockpoolCore
import Synchronization

/// The report of a scrub in progress.
final class ScrubRun: Sendable {
    let dryRun: Bool
    private let store: String
    private let state: Mutex<(report: ScrubReport, checked: Int, total: Int)>
    private let progress: @Sendable (ScrubProgress) -> Void
    private let began = ContinuousClock.now

    init(_ store: String, dryRun: Bool, startedAt: Timestamp, progress: @escaping @Sendable (ScrubProgress) -> Void) {
        self.dryRun = dryRun
        self.store = store
        self.progress = progress
        state = Mutex((ScrubReport(dryRun: dryRun, startedAt: startedAt), 0, 0))
    }

    /// The report up to now.
    var report: ScrubReport {
        state.withLock { state in
            state.report.seconds = (ContinuousClock.now - began) / .seconds(1)
            return state.report
        }
    }

    func note(_ change: (inout ScrubReport) -> Void) { state.withLock { change(&$0.report) } }

    func expect(_ total: Int) { state.withLock { $0.total = total } }

    /// Counts a checked body and reports the progress.
    func passed() {
        let now = state.withLock { state in
            state.checked += 1
            return ScrubProgress(store: store, checked: state.checked, total: state.total)
        }
        progress(now)
    }

    /// Runs one step; records an error in the report and returns, so that the next step runs. No step starts after the task was cancelled.
    /// - Returns: true if the step completed.
    @discardableResult
    func attempt(_ step: String, _ body: () async throws -> Void) async -> Bool {
        do {
            try Task.checkCancellation()
            try await body()
            return true
        } catch is CancellationError {
            note { if $0.errors.last != "stopped before its end" { $0.errors.append("stopped before its end") } }
        } catch {
            note { $0.errors.append("\(store): \(step): \(error)") }
        }
        return false
    }

    /// Hashes a body; records a read error of the disk.
    /// - Returns: nil when the disk could not be read.
    func verdict(of body: StoredBody, seal: BodySeal?, on lanes: FileLanes) async -> StoredBody.Verdict? {
        do {
            return try await lanes.run(0) { try body.verdict(seal) }
        } catch {
            note { if $0.errors.count < 20 { $0.errors.append("\(store): \(error)") } }
            return nil
        }
    }
}

extension ScrubReport.Bodies {
    /// Counts a body by its verdict; only a hashed body counts as checked.
    mutating func add(_ body: StoredBody, _ verdict: StoredBody.Verdict?) {
        switch verdict {
        case .missing: missing += 1
        case nil: unreadable += 1
        case .intact, .bad:
            checked += 1
            bytes += body.length
            bad += verdict == .bad ? 1 : 0
        }
    }
}
