// What a scrub found: one shape for the command and the admin API (storage.md §2, §3).
package import RockpoolCore

/// What a scrub of the stores found, and what it has set right. Each store fills its part; `merged` makes them one.
package struct ScrubReport: Hashable, Sendable, Codable {
    /// Bodies that were read and hashed, those in rows included.
    package struct Bodies: Hashable, Sendable, Codable {
        package var checked = 0
        package var bytes: Int64 = 0
        /// Of another length or hash than their row says.
        package var bad = 0
        /// Of rows, without a file.
        package var missing = 0
        /// The disk did not give them; they are kept.
        package var unreadable = 0
    }

    /// Files that are none of ours; they are left alone.
    package struct Foreign: Hashable, Sendable, Codable {
        package static let namesAtMost = 20
        package var count = 0
        /// The first of them.
        package var names: [String] = []

        mutating func add(_ found: [String]) {
            count += found.count
            names += found.sorted().prefix(Self.namesAtMost - names.count)
        }
    }

    /// Sums that are not what they sum up; counted minus found, so 0 when all is well.
    package struct Drift: Hashable, Sendable, Codable {
        /// Of `usage`, all categories, each as if it were positive.
        package var entries = 0
        package var entryBytes: Int64 = 0
        /// Of the sum of all bodies.
        package var bodyBytes: Int64 = 0
        /// Bodies whose count of entries is wrong.
        package var references = 0
        /// What the ledger counts for bodies beyond what they take on the disk, before anything was set right.
        package var ledgerBytes: Int64 = 0
    }

    package struct Cache: Hashable, Sendable, Codable {
        /// What SQLite says of the pages; none: they are sound.
        package var pages: [String] = []
        package var bodies = Bodies()
        /// Entries that went, or would, because their body is bad or missing.
        package var dropped = 0
        /// Bodies without a row that went, or would.
        package var orphans = 0
        package var foreign = Foreign()
        package var drift = Drift()
    }

    /// A body of the outbox that cannot be sent as it was taken. It is never removed.
    package struct BadBlob: Hashable, Sendable, Codable {
        /// 64 hexadecimal digits.
        package var sha256: String
        /// `bad`, `missing`, or `unnamed`: its row is gone.
        package var what: String
        /// Public ids of operations that have not ended and need it.
        package var operations: [String]
    }

    package struct Data: Hashable, Sendable, Codable {
        package var pages: [String] = []
        /// Rows whose parent is gone.
        package var strays = 0
        package var blobs = Bodies()
        package var badBlobs: [BadBlob] = []
        /// Blobs whose count of operations is wrong.
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
    /// In words; what could not be looked at was left as it is.
    package var errors: [String] = []

    package init(dryRun: Bool, startedAt: Timestamp) {
        self.dryRun = dryRun
        self.startedAt = RFC3339.format(startedAt)
    }

    /// Whether all was as it should be. Foreign files are nobody's fault.
    package var isClean: Bool {
        let isCacheClean = cache.map { $0.pages.isEmpty && $0.bodies.isClean && $0.dropped + $0.orphans == 0 && $0.drift == Drift() }
        let isDataClean = data.map {
            $0.pages.isEmpty && $0.blobs.isClean && $0.badBlobs.isEmpty && $0.strays + $0.references + $0.orphans == 0
        }
        return isCacheClean ?? true && isDataClean ?? true && errors.isEmpty
    }

    /// This store's part and the other's as one report.
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

/// How far a scrub of one store is.
package struct ScrubProgress: Hashable, Sendable {
    /// `cache` or `data`.
    package var store: String
    /// Bodies looked at.
    package var checked: Int
    /// Bodies there were when it began; what is stored meanwhile may make `checked` pass it.
    package var total: Int

    package init(store: String, checked: Int = 0, total: Int = 0) {
        self.store = store
        self.checked = checked
        self.total = total
    }
}
