// The sums that triggers keep, added up anew; what they are off by is the same before and after any write of a store (storage.md §2).
import GRDB

/// What each sum has beyond the rows it sums up. Nothing where it is right.
struct CacheSums: Hashable, Sendable {
    struct Usage: Hashable, Sendable {
        var entries: Int
        var bytes: Int64
        var pinnedEntries: Int
        var pinnedBytes: Int64
    }

    /// By category; those that are right are left out.
    var usage: [String: Usage] = [:]
    var bodyBytes: Int64 = 0

    init() {}

    /// In one snapshot, so that writes meanwhile are in all of it or in none.
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
        bodyBytes = try BodySum.drift(db)
    }

    /// Takes away what is too much. Right whenever it is done: writes between keep the difference.
    func settle(_ db: Database) throws {
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
