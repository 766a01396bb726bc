// Which parts of a path's queries do not matter, remembered across starts (No-Vary-Search).
import GRDB
import RockpoolCore

extension CacheStore {
    /// Bytes of a path and its rule together; a longer pair is not remembered.
    static let searchRuleBytes = 2048

    /// How many rules are remembered: 4096, fewer in a small cache.
    static func searchRuleLimit(_ cacheLimit: ByteCount) -> Int { Int(min(4096, max(64, cacheLimit.bytes / 16_384))) }

    /// The rule last noted for a path. Callable on an event loop.
    /// - Parameter path: the origin's URL and the path, without the query.
    package func searchRule(ofPath path: String) -> String? { searchRules[path] }

    /// Notes what an origin said of the queries of a path, or with nil that it said nothing: known to `searchRule` at once, and
    /// written down when it is news. Entries under another rule's normal form are not found any more.
    /// - Throws: `DatabaseError`; what was noted holds until the next start then.
    package func noteSearchRule(_ rule: String?, ofPath path: String) async throws {
        let fits = rule.map { path.utf8.count + $0.utf8.count <= Self.searchRuleBytes } ?? true
        let now = clock().milliseconds
        let paths = searchRules.note(fits ? rule : nil, of: path, at: now)
        guard !paths.isEmpty else { return }
        // What was found by another rule's normal form is not what is found now.
        memory.forgetHot()
        let row = Room(rows: rowCost(Int64(Self.searchRuleBytes)))
        let room = await reserve(row) ? Reservation(granted: row, of: footprint) : nil
        try await queue.commit { db in
            for path in paths { try self.writeSearchRule(ofPath: path, at: now, hasRoom: room != nil, db) }
        }
        withExtendedLifetime(room) {}
    }

    /// Writes what memory holds by now: two that note the same path at once may come here in either order. Where there is no room
    /// for the new rule, the old one goes all the same.
    private func writeSearchRule(ofPath path: String, at moment: Int64, hasRoom: Bool, _ db: Database) throws {
        guard hasRoom, let rule = searchRules[path] else {
            return try db.cachedStatement(sql: "DELETE FROM search_rule WHERE path = ?").execute(arguments: [path])
        }
        try db.cachedStatement(sql: "INSERT OR REPLACE INTO search_rule (path, rule, used_at) VALUES (?, ?, ?)")
            .execute(arguments: [path, rule, moment])
    }

    /// What was noted before this start, the least recent first.
    static func storedSearchRules(_ db: Database) throws -> [(path: String, rule: String, writtenAt: Int64)] {
        try Row.fetchAll(db, sql: "SELECT path, rule, used_at FROM search_rule ORDER BY used_at").map { row in
            var columns = RowReader(row)
            return (try columns.next(), try columns.next(), try columns.next())
        }
    }
}
