// One scrub while it goes: its report grows, and a step that fails does so alone.
import RockpoolCore
import Synchronization

/// The report of a scrub as far as it is.
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

    /// What has been found until now.
    var report: ScrubReport {
        state.withLock { state in
            state.report.seconds = (ContinuousClock.now - began) / .seconds(1)
            return state.report
        }
    }

    func note(_ change: (inout ScrubReport) -> Void) { state.withLock { change(&$0.report) } }

    func expect(_ total: Int) { state.withLock { $0.total = total } }

    /// One body more was looked at.
    func passed() {
        let now = state.withLock { state in
            state.checked += 1
            return ScrubProgress(store: store, checked: state.checked, total: state.total)
        }
        progress(now)
    }

    /// Does one step; when it fails, says so in the report, and the next goes on. None is begun once the task is cancelled.
    /// - Returns: whether it was done.
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

    /// Hashes a body; what the disk does not give is noted, and is nobody's fault but the disk's.
    /// - Returns: nil when the disk did not say.
    func verdict(of body: StoredBody, _ seal: BodySeal?, on lanes: FileLanes) async -> StoredBody.Verdict? {
        do {
            return try await lanes.run(0) { try body.verdict(seal) }
        } catch {
            note { if $0.errors.count < 20 { $0.errors.append("\(store): \(error)") } }
            return nil
        }
    }
}

extension ScrubReport.Bodies {
    /// Counts one that was hashed; one that is missing, or that the disk did not give, was not.
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
