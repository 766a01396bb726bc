// Recomputation of the sums that triggers keep; a drift is not changed by any write of a store (docs/storage.md#scrub).
import GRDB

/// The excess of each sum over the rows it sums up; zero for a correct sum.
struct CacheSums: Hashable, Sendable {
    struct Usage: Hashable, Sendable {
        var entries: Int
        var bytes: Int64
        var pinnedEntries: Int
        var pinnedBytes: Int64
    }

    /// By category; correct categories are left out.
    var usage: [String: Usage] = [:]
    var bodyBytes: Int64 = 0

    init() {}

    /// Computes the drift in one snapshot, which contains each concurrent write completely or not at all.
    init(_ db: Database) throws {
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT category, sum(entries) AS e, sum(bytes) AS b, sum(pinned_entries) AS pe, sum(pinned_bytes) AS pb FROM (
                    SELECT category, entries, bytes, pinned_entries, pinned_bytes FROM usage
                    UNION ALL SELECT category, -count(*), -sum(bytes), -sum(pinned), -sum(pinned * bytes) FROM entry GROUP BY category
                ) GROUP BY category HAVING e <> 0 OR b <> 0 OR pe <> 0 OR pb <> 0
                """)
        for row in rows {
            var columns = RowReader(row)
            usage[try columns.next(String.self)] = Usage(
                entries: try columns.next(), bytes: try columns.next(), pinnedEntries: try columns.next(), pinnedBytes: try columns.next())
        }
        bodyBytes = try BodySum.drift(in: db)
    }

    /// Subtracts the drift. Correct at any later time, because writes in between do not change the drift.
    func settle(in db: Database) throws {
        for (category, drift) in usage {
            try db.execute(
                sql: """
                    INSERT INTO usage (category, entries, bytes, pinned_entries, pinned_bytes) VALUES (?1, -?2, -?3, -?4, -?5)
                        ON CONFLICT (category) DO UPDATE SET entries = entries - ?2, bytes = bytes - ?3,
                            pinned_entries = pinned_entries - ?4, pinned_bytes = pinned_bytes - ?5
                    """, arguments: [category, drift.entries, drift.bytes, drift.pinnedEntries, drift.pinnedBytes])
        }
        try db.execute(
            sql: """
                INSERT INTO total (name, bytes) VALUES ('bodies', -?1) ON CONFLICT (name) DO UPDATE SET bytes = bytes - ?1
                """, arguments: [bodyBytes])
    }

    func note(in cache: inout ScrubReport.Cache?) {
        cache?.drift.entries = usage.values.reduce(0) { $0 + abs($1.entries) }
        cache?.drift.entryBytes = usage.values.reduce(0) { $0 + abs($1.bytes) }
        cache?.drift.bodyBytes = bodyBytes
    }
}
