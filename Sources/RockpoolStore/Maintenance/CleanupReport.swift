// The report of a cleanup or of its dry run, shared by the command, the admin API and the schedule (docs/storage.md#cleanup).
package import RockpoolCore
import Synchronization

/// The scope of a cleanup.
package struct CleanupOptions: Hashable, Sendable, Codable {
    /// Removes every stale entry and every asset that is not pinned.
    package var aggressive: Bool
    /// Takes the same decisions, changes nothing.
    package var dryRun: Bool
    /// Compacts even when few pages are free.
    package var vacuum: Bool

    /// Also removes offline copies that are held: those of upstreams that are away, and those that waiting writes name.
    package var includesHeld: Bool
    /// Lists each removed entry.
    package var lists: Bool
    /// Only cache entries of this category.
    package var category: String?
    /// Only cache entries that were not used for this long.
    package var olderThan: TimeSpan?

    package init(
        aggressive: Bool = false, dryRun: Bool = false, vacuum: Bool = false, includesHeld: Bool = false, lists: Bool = false,
        category: String? = nil, olderThan: TimeSpan? = nil
    ) {
        self.aggressive = aggressive
        self.dryRun = dryRun
        self.vacuum = vacuum
        self.includesHeld = includesHeld
        self.lists = lists
        self.category = category
        self.olderThan = olderThan
    }
}

/// What a cleanup leaves alone although it would go by its age: offline copies that one lives on.
package struct CleanupHold: Hashable, Sendable {
    /// The origins of upstreams that are away.
    package var origins: [String]
    /// The URLs that waiting writes name.
    package var urls: [String]

    package init(origins: [String] = [], urls: [String] = []) { (self.origins, self.urls) = (origins, urls) }
}

/// One removed entry.
package struct CleanedEntry: Hashable, Sendable, Codable {
    package let key: String
    package let category: String
    package let bytes: Int64
    package let reason: String
}

/// The report of one run. Each store fills its part; `merged` combines them.
package struct CleanupReport: Hashable, Sendable, Codable {
    /// Removed or kept cache entries.
    package struct Entries: Hashable, Sendable, Codable {
        package var entries = 0
        package var bytes: Int64 = 0
        package var byCategory: [String: RemovalCount] = [:]
        /// The reason of removal: `expired` (past its offline window), `stale, offline copy`, `assets`; of keeping: `pinned`, `held`, `notDue`.
        package var byReason: [String: RemovalCount] = [:]
        /// Bytes of the reason `notDue` by category; not part of the JSON.
        var notDue: [String: Int64] = [:]

        private enum CodingKeys: CodingKey { case entries, bytes, byCategory, byReason }

        /// The sum of all entries.
        package var total: RemovalCount { RemovalCount(entries: entries, bytes: bytes) }

        mutating func add(_ count: RemovalCount, of category: String, as reason: String) {
            entries += count.entries
            bytes += count.bytes
            byCategory.merge([category: count]) { $0 + $1 }
            byReason.merge([reason: count]) { $0 + $1 }
            if reason == "notDue" { notDue[category, default: 0] += count.bytes }
        }

        static func + (a: Self, b: Self) -> Self {
            Self(
                entries: a.entries + b.entries, bytes: a.bytes + b.bytes, byCategory: a.byCategory.merging(b.byCategory) { $0 + $1 },
                byReason: a.byReason.merging(b.byReason) { $0 + $1 }, notDue: a.notDue.merging(b.notDue) { $0 + $1 })
        }
    }

    /// Purged and kept operations.
    package struct Operations: Hashable, Sendable, Codable {
        package var purged = 0
        /// Those that wait and those that are kept for their time.
        package var kept = 0
        /// The part of `kept` that is still to be sent, or waits for a person or a credential.
        package var waiting = 0
        /// Operations with a purge announced for the first time.
        package var warned = 0
    }

    /// Allocated bytes of the two directories.
    package struct Files: Hashable, Sendable, Codable {
        package var cacheBefore: Int64 = 0
        package var cacheAfter: Int64 = 0
        package var dataBefore: Int64 = 0
        package var dataAfter: Int64 = 0
    }

    /// True if a full VACUUM ran, why (not), and pages of the files before and after.
    package struct Vacuum: Hashable, Sendable, Codable {
        package var ran = false
        package var why = ""
        package var pagesBefore = 0
        package var pagesAfter = 0
        /// Pages that stay free within the files afterwards.
        package var freePages = 0
    }

    package var dryRun: Bool
    package var aggressive: Bool
    /// RFC 3339, UTC.
    package var startedAt: String
    /// Duration of the run.
    package var seconds: Double
    package var removed = Entries()
    /// The removed entries, at most `listLimit`; nil if no list was asked for.
    package var list: [CleanedEntry]?
    /// Offline copies that are kept because their upstream is away, by its origin, or because a waiting write names them.
    package var held: [String: RemovalCount] = [:]
    package var kept = Entries()
    package var operations = Operations()
    /// Temporaries, files without rows, rows without files.
    package var orphans = 0
    /// Other files in the directory of the bodies; they are left alone.
    package var foreign = 0
    package var files = Files()
    package var vacuum = Vacuum()
    /// Messages for people about skipped work and its reason.
    package var notes: [String] = []
    /// Messages for people about failed steps; these changed nothing.
    package var errors: [String] = []
    /// What would free the most, and why nothing more is removed, one sentence each.
    package var advice: [String] = []

    /// The most entries of `list`.
    package static let listLimit = 10_000

    package init(_ options: CleanupOptions, startedAt: Timestamp) {
        list = options.lists ? [] : nil
        dryRun = options.dryRun
        aggressive = options.aggressive
        self.startedAt = RFC3339.format(startedAt)
        seconds = 0
    }

    /// Combines the reports of both stores into one.
    package func merged(with other: CleanupReport) -> CleanupReport {
        var sum = self
        sum.seconds += other.seconds
        sum.removed = removed + other.removed
        sum.kept = kept + other.kept
        sum.list = list.map { $0 + (other.list ?? []) }
        sum.held = held.merging(other.held) { $0 + $1 }
        sum.operations.purged += other.operations.purged
        sum.operations.kept += other.operations.kept
        sum.operations.waiting += other.operations.waiting
        sum.operations.warned += other.operations.warned
        sum.orphans += other.orphans
        sum.foreign += other.foreign
        sum.files.cacheBefore += other.files.cacheBefore
        sum.files.cacheAfter += other.files.cacheAfter
        sum.files.dataBefore += other.files.dataBefore
        sum.files.dataAfter += other.files.dataAfter
        sum.vacuum.ran = vacuum.ran || other.vacuum.ran
        sum.vacuum.why = vacuum.why == other.vacuum.why ? vacuum.why : "cache: \(vacuum.why); data: \(other.vacuum.why)"
        sum.vacuum.pagesBefore += other.vacuum.pagesBefore
        sum.vacuum.pagesAfter += other.vacuum.pagesAfter
        sum.vacuum.freePages += other.vacuum.freePages
        sum.notes += other.notes.filter { !notes.contains($0) }
        sum.errors += other.errors
        sum.advice = CleanupAdvice.lines(of: sum)
        return sum
    }
}

extension RemovalCount {
    static func + (a: Self, b: Self) -> Self { RemovalCount(entries: a.entries + b.entries, bytes: a.bytes + b.bytes) }

    mutating func subtract(_ other: Self) {
        entries -= other.entries
        bytes -= other.bytes
    }
}

/// Advice about the entries and operations that a cleanup keeps.
enum CleanupAdvice {
    /// Parts below this size are not worth a command.
    private static let leastBytes: Int64 = 100_000

    /// Returns one line for each kept part with the command that frees it, the largest first, then why nothing else is removed.
    static func lines(of report: CleanupReport) -> [String] {
        let notDue = report.kept.byReason["notDue"]?.bytes ?? 0, pinned = report.kept.byReason["pinned"]?.bytes ?? 0
        var parts: [(bytes: Int64, words: String)] = []
        if notDue >= leastBytes, let (name, bytes) = report.kept.notDue.max(by: { ($0.value, $1.key) < ($1.value, $0.key) }) {
            let how =
                name == CacheCategory.assets.name && !report.aggressive
                ? "rockpool storage-cleanup --aggressive --category \(name) removes those that are not pinned"
                : "rockpool cache purge --category \(name) removes all of them, and they cannot be read offline then"
            parts.append((bytes, "most: \(ByteCount(bytes).rounded) of the category \(name): \(how)"))
        }
        for (origin, count) in report.held.sorted(by: { $0.key < $1.key }) where count.entries > 0 {
            let place = "of \(origin) (\(ByteCount(count.bytes).rounded))"
            let words = count.entries.counted("offline copy \(place) stays", "offline copies \(place) stay")
            parts.append(
                (count.bytes, "\(words): it is away, or writes that wait name them; with --yes they go, and cannot be read then"))
        }
        if pinned >= leastBytes {
            parts.append(
                (pinned, "pinned: \(ByteCount(pinned).rounded), never removed by itself: rockpool cache unpin URL, then clean up again"))
        }
        if report.files.dataAfter > report.files.cacheAfter, report.operations.waiting > 0 {
            let size = ByteCount(report.files.dataAfter).rounded
            let words = "the outbox takes \(size) with its reserve for a full disk, and writes that wait are never removed"
            parts.append((report.files.dataAfter, "\(words): rockpool outbox summary shows whose they are"))
        }
        let (waiting, ended) = (report.operations.waiting, report.operations.kept - report.operations.waiting)
        let reasons = [
            notDue > 0 ? "\(ByteCount(notDue).rounded) are fresh, were used lately, or are kept for offline use" : nil,
            pinned > 0 ? "\(ByteCount(pinned).rounded) are pinned" : nil,
            waiting > 0 ? waiting.counted("write waits", "writes wait") : nil,
            ended > 0 ? ended.counted("ended write is kept for its time", "ended writes are kept for their time") : nil,
        ].compactMap(\.self)
        let why = reasons.isEmpty ? "nothing more is stored" : "nothing more is removed: \(reasons.joined(separator: "; "))"
        return parts.sorted { $0.bytes > $1.bytes }.map(\.words) + [why]
    }
}

/// The steps of a cleanup, in the order of a whole run; the names occur in a report's `errors` (docs/reference/admin-api.md#storage).
enum CleanupStep: String, CaseIterable, Sendable {
    case cache, recency, expired, assets, orphans, temporaries, kept, compaction, audit
    case cacheAfter = "cache after"
    case data, operations, log, attempts, credentials, blobs
    case dataCompaction = "compaction of the outbox"
    case lastCleanup = "last cleanup"
    case dataAfter = "data after"
}

/// The progress of a run.
package struct CleanupProgress: Hashable, Sendable {
    /// The name of the current step.
    package let step: String
    /// Number of completed steps, and of steps in a whole run.
    package let done: Int
    package let of = CleanupStep.allCases.count
    /// Entries removed from the cache so far.
    package var removed: RemovalCount

    init(_ step: CleanupStep, removed: RemovalCount) {
        self.step = step.rawValue
        done = CleanupStep.allCases.firstIndex(of: step) ?? 0
        self.removed = removed
    }
}

/// Called at every step and for every removed batch.
package typealias CleanupWatch = @Sendable (CleanupProgress) -> Void

// MARK: - Runs

/// The report of a run in progress: it grows, and a failing step fails alone (docs/storage.md#cleanup).
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
