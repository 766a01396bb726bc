// The report of a cleanup or of its dry run, shared by the command, the admin API and the schedule (docs/storage.md#cleanup).
package import RockpoolCore

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
