// The report of a scrub, shared by the command and the admin API (docs/storage.md#scrub).
package import RockpoolCore
import Synchronization

/// The findings and repairs of a scrub. Each store fills its part; `merged` combines them.
package struct ScrubReport: Hashable, Sendable, Codable {
    /// Bodies that were read and hashed, including those in rows.
    package struct Bodies: Hashable, Sendable, Codable {
        package var checked = 0
        package var bytes: Int64 = 0
        /// Bodies with another length or hash than in their row.
        package var bad = 0
        /// Bodies of rows without a file.
        package var missing = 0
        /// Bodies that could not be read from the disk; they are kept.
        package var unreadable = 0
    }

    /// Files of other origin; they are left alone.
    package struct Foreign: Hashable, Sendable, Codable {
        package static let namesAtMost = 20
        package var count = 0
        /// The first of their names.
        package var names: [String] = []

        mutating func add(_ found: [String]) {
            count += found.count
            names += found.sorted().prefix(Self.namesAtMost - names.count)
        }
    }

    /// Differences between the sums and their rows, counted minus found: 0 when all sums are correct.
    package struct Drift: Hashable, Sendable, Codable {
        /// Of `usage`: the sum of the absolute differences of all categories.
        package var entries = 0
        package var entryBytes: Int64 = 0
        /// The drift of the sum of all bodies.
        package var bodyBytes: Int64 = 0
        /// Bodies with a wrong reference count.
        package var references = 0
        /// Bytes that the ledger counted for bodies beyond their allocated size, before any repair.
        package var ledgerBytes: Int64 = 0
    }

    package struct Cache: Hashable, Sendable, Codable {
        /// Problems of the pages as reported by SQLite; none when the pages are sound.
        package var pages: [String] = []
        package var bodies = Bodies()
        /// Entries that were (or would be) removed because their body is bad or missing.
        package var dropped = 0
        /// Bodies without a row that were (or would be) removed.
        package var orphans = 0
        package var foreign = Foreign()
        package var drift = Drift()
    }

    /// A body of the outbox that cannot be sent as it was accepted; never removed.
    package struct BadBlob: Hashable, Sendable, Codable {
        /// 64 hexadecimal digits.
        package var sha256: String
        /// `bad`, `missing`, or `unnamed` when its row is missing.
        package var what: String
        /// Public ids of the unfinished operations that need it.
        package var operations: [String]
    }

    package struct Data: Hashable, Sendable, Codable {
        package var pages: [String] = []
        /// Rows with a missing parent row.
        package var strays = 0
        package var blobs = Bodies()
        package var badBlobs: [BadBlob] = []
        /// Blobs with a wrong reference count.
        package var references = 0
        package var orphans = 0
        package var foreign = Foreign()
    }

    package var dryRun: Bool
    /// RFC 3339, UTC.
    package var startedAt: String
    package var seconds: Double = 0
    package var cache: Cache?
    package var data: Data?
    /// Messages for people about failed checks; these changed nothing.
    package var errors: [String] = []

    package init(dryRun: Bool, startedAt: Timestamp) {
        self.dryRun = dryRun
        self.startedAt = RFC3339.format(startedAt)
    }

    /// True if nothing was wrong. Foreign files do not count.
    package var isClean: Bool {
        let isCacheClean = cache.map { $0.pages.isEmpty && $0.bodies.isClean && $0.dropped + $0.orphans == 0 && $0.drift == Drift() }
        let isDataClean = data.map {
            $0.pages.isEmpty && $0.blobs.isClean && $0.badBlobs.isEmpty && $0.strays + $0.references + $0.orphans == 0
        }
        return isCacheClean ?? true && isDataClean ?? true && errors.isEmpty
    }

    /// Combines the reports of both stores into one.
    package func merged(with other: ScrubReport) -> ScrubReport {
        var sum = self
        sum.seconds += other.seconds
        sum.cache = cache ?? other.cache
        sum.data = data ?? other.data
        sum.errors += other.errors
        return sum
    }
}

extension ScrubReport.Bodies {
    fileprivate var isClean: Bool { bad + missing + unreadable == 0 }
}

/// The progress of the scrub of one store.
package struct ScrubProgress: Hashable, Sendable {
    /// `cache` or `data`.
    package var store: String
    /// Number of bodies checked.
    package var checked: Int
    /// Number of bodies at the start; bodies stored meanwhile may make `checked` exceed it.
    package var total: Int

    package init(store: String, checked: Int = 0, total: Int = 0) {
        self.store = store
        self.checked = checked
        self.total = total
    }
}

// MARK: - Runs

/// The report of a scrub in progress: it grows, and a failing step fails alone.
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
