// Query parameters that do not affect the response, by path, persisted across starts (No-Vary-Search).
import GRDB
import RockpoolCore

extension CacheStore {
    /// Maximum bytes of a path and its rule together; a longer pair is not stored.
    static let searchRuleBytes = Int.kib(2)

    /// Maximum number of stored rules: 4096, fewer in a small cache.
    static func searchRuleLimit(_ cacheLimit: ByteCount) -> Int { min(searchRuleCount, Int(max(64, cacheLimit.bytes / .kib(16)))) }
    private static let searchRuleCount = 4096

    /// True if some path has a rule. Callable on an event loop.
    package var hasSearchRules: Bool { !searchRules.isEmpty }

    /// Returns the rule last noted for a path. Callable on an event loop.
    /// - Parameter path: the origin's URL and the path, without the query.
    package func searchRule(ofPath path: String) -> String? { searchRules[path] }

    /// Records the No-Vary-Search rule of a path, or with nil that the origin sent none. `searchRule` returns it at once; the database is
    /// written only when the rule changed. Entries stored under another rule's normal form are not found any more.
    /// - Throws: `DatabaseError`; the recorded rule then holds until the next start.
    package func noteSearchRule(_ rule: String?, ofPath path: String) async throws {
        let fits = rule.map { path.utf8.count + $0.utf8.count <= Self.searchRuleBytes } ?? true
        let now = clock().milliseconds
        let paths = searchRules.note(fits ? rule : nil, of: path, at: now)
        guard !paths.isEmpty else { return }
        // A hot reply was chosen by another rule's normal form and may not match any more.
        memory.forgetHot()
        let row = SpaceRequest(rows: rowCost(Int64(Self.searchRuleBytes)))
        let room = await reserve(row) ? Reservation(granted: row, of: footprint) : nil
        try await queue.commit { db in
            for path in paths { try self.writeSearchRule(ofPath: path, at: now, hasRoom: room != nil, in: db) }
        }
        withExtendedLifetime(room) {}
    }

    /// Writes the rule that memory holds now, because concurrent updates of the same path may arrive here in either order. Without space
    /// for the new rule, the old one is deleted all the same.
    private func writeSearchRule(ofPath path: String, at moment: Int64, hasRoom: Bool, in db: Database) throws {
        guard hasRoom, let rule = searchRules[path] else {
            return try db.cachedStatement(sql: "DELETE FROM search_rule WHERE path = ?").execute(arguments: [path])
        }
        try db.cachedStatement(sql: "INSERT OR REPLACE INTO search_rule (path, rule, used_at) VALUES (?, ?, ?)")
            .execute(arguments: [path, rule, moment])
    }

    /// Returns the rules stored before this start, the least recent first.
    static func storedSearchRules(in db: Database) throws -> [(path: String, rule: String, writtenAt: Int64)] {
        try Row.fetchAll(db, sql: "SELECT path, rule, used_at FROM search_rule ORDER BY used_at").map { row in
            var columns = RowReader(row)
            return (try columns.next(), try columns.next(), try columns.next())
        }
    }
}
