// Invalidation of stored responses after an unsafe request, by URL and by group (RFC 9111 §4.4, RFC 9875).
import GRDB
package import RockpoolCore

extension CacheStore {
    /// Invalidates the entries of these absolute URLs, every variant and identity: they must be revalidated before reuse, and so must the
    /// response to a request that is already in flight (RFC 9111 §4.4).
    /// - Returns: the number of invalidated entries.
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

    /// Invalidates every entry of `origin` that belongs to one of these groups (RFC 9875 §3), in batches, so that a large group does not
    /// block the writer.
    /// - Returns: the number of invalidated entries; an entry of two groups counts twice.
    /// - Throws: `DatabaseError`; entries marked before the error stay marked.
    package func invalidate(groups: [String], origin: OriginAddress) async throws -> Int {
        let now = clock()
        let origin = origin.url
        invalidations.note(groups.map { .group($0, origin: origin) }, at: now)
        var count = 0
        for group in groups {
            var last: Int64 = 0
            while true {
                let from = last
                let batch = try await queue.commit(weight: .kib(Int64(batchRows))) { db in
                    try self.mark(in: db, group: group, origin: origin, after: from, at: now)
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
        in db: Database, group: String, origin: String, after last: Int64, at now: Timestamp
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

    /// True if a response was invalidated while its request was in flight. Called on the writer's thread: an invalidation noted after this
    /// check updates the row itself.
    func wasInvalidated(_ key: CacheKey, groups: [String], since sent: Timestamp) -> Bool {
        let origin = Self.origin(of: key.url)
        return invalidations.happened(
            toAny: [.url(key.url), .path(Self.path(of: key.url))] + groups.map { .group($0, origin: origin) }, since: sent)
    }

    /// Marks a response that was requested before an own write to its path. Throws if a copy that includes the write is stored.
    /// - Throws: `OlderThanOwnWrite`, `DatabaseError`.
    func noteOwnWrites(on response: inout StoredResponse, of key: CacheKey, in db: Database) throws {
        guard response.ownWrite == nil, let at = invalidations.ownWrite(to: Self.path(of: key.url), since: response.requestTime) else {
            return
        }
        let newer = try Bool.fetchOne(
            try db.cachedStatement(
                sql: "SELECT 1 FROM entry WHERE key_hash = ? AND own_write_at > ? AND own_write_included = 1"),
            arguments: [EntryRow.keyHash(key), response.requestTime.milliseconds])
        if newer == true { throw OlderThanOwnWrite() }
        response.ownWrite = OwnWriteMark(at: at, isIncluded: false)
    }

    /// Returns the absolute URL without its query.
    static func path(of url: String) -> String { String(url.prefix { $0 != "?" }) }

    /// Sets the groups of an entry to exactly these.
    func setGroups(_ groups: [String], of entry: Int64, origin: String, in db: Database) throws {
        try db.cachedStatement(sql: "DELETE FROM entry_group WHERE entry = ?").execute(arguments: [entry])
        let statement = try db.cachedStatement(sql: "INSERT OR IGNORE INTO entry_group (entry, origin, name) VALUES (?, ?, ?)")
        for group in groups.prefix(Self.groupLimit) { try statement.execute(arguments: [entry, origin, group]) }
    }
}

/// Thrown for a response that is not stored, because it was requested before an own write whose result is stored.
struct OlderThanOwnWrite: Error {}

/// Thrown for a response that is not stored, because the copies of its identity were removed after it was requested.
struct IdentityForgotten: Error {}
