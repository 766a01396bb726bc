// Stored responses that an unsafe request has put in doubt, by URL and by group (RFC 9111 §4.4, RFC 9875).
import GRDB
package import RockpoolCore

extension CacheStore {
    /// Entries stored for these absolute URLs, every variant and identity, are not to be used again without being validated, nor is
    /// what a request that is already under way brings (RFC 9111 §4.4).
    /// - Returns: how many there were.
    /// - Throws: `DatabaseError`.
    package func invalidate(urls: [String]) async throws -> Int {
        let now = clock()
        invalidations.note(urls.map { .url($0) }, at: now)
        let keys = try await queue.commit { db in
            let statement = try db.cachedStatement(
                sql: "UPDATE entry SET invalid = 1, fresh_until = min(fresh_until, ?) WHERE url = ? RETURNING key")
            return try urls.flatMap { try String.fetchAll(statement, arguments: [now.milliseconds, $0]) }
        }
        memory.remove(keys)
        return keys.count
    }

    /// The same for every entry of `origin` that is of one of these groups (RFC 9875 §3): marked in batches, so that a large group
    /// does not hold the writer up.
    /// - Returns: how many there were; an entry of two groups counts twice.
    /// - Throws: `DatabaseError`; what had been marked by then stays marked.
    package func invalidate(groups: [String], origin: OriginAddress) async throws -> Int {
        let now = clock()
        let origin = origin.url
        invalidations.note(groups.map { .group($0, origin: origin) }, at: now)
        var count = 0
        for group in groups {
            var last: Int64 = 0
            while true {
                let from = last
                let batch = try await queue.commit(weight: Int64(batchRows) * 1024) { db in
                    try self.mark(db, group: group, origin: origin, after: from, at: now)
                }
                memory.remove(batch.map(\.key))
                count += batch.count
                guard batch.count == batchRows, let end = batch.map(\.id).max() else { break }
                last = end
            }
        }
        return count
    }

    private func mark(
        _ db: Database, group: String, origin: String, after last: Int64, at now: Timestamp
    ) throws -> [(id: Int64, key: String)] {
        let statement = try db.cachedStatement(
            sql: """
                UPDATE entry SET invalid = 1, fresh_until = min(fresh_until, ?1) WHERE id IN (
                    SELECT entry FROM entry_group WHERE name = ?2 AND origin = ?3 AND entry > ?4 ORDER BY entry LIMIT \(batchRows))
                RETURNING id, key
                """)
        return try Row.fetchAll(statement, arguments: [now.milliseconds, group, origin, last]).map { row in
            var columns = RowReader(row)
            return (try columns.next(), try columns.next())
        }
    }

    /// Whether what a request brought was put in doubt while it was under way. On the writer's thread: an invalidation that is
    /// noted after this was asked marks the row itself.
    func wasInvalidated(_ key: CacheKey, groups: [String], since sent: Timestamp) -> Bool {
        let origin = Self.origin(of: key.url)
        return invalidations.happened(toAny: [.url(key.url)] + groups.map { .group($0, origin: origin) }, since: sent)
    }

    /// Puts an entry into exactly these groups.
    func setGroups(_ groups: [String], of entry: Int64, origin: String, _ db: Database) throws {
        try db.cachedStatement(sql: "DELETE FROM entry_group WHERE entry = ?").execute(arguments: [entry])
        let statement = try db.cachedStatement(sql: "INSERT OR IGNORE INTO entry_group (entry, origin, name) VALUES (?, ?, ?)")
        for group in groups.prefix(Self.groupLimit) { try statement.execute(arguments: [entry, origin, group]) }
    }
}
