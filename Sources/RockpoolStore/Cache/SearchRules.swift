// The No-Vary-Search rules of origins by path, in memory, bounded (No-Vary-Search).
import GRDB
package import RockpoolCore
import Synchronization

/// Rules by path. The single lock is held only for a dictionary access: callable on any event loop.
final class SearchRules: Sendable {
    private struct Rule {
        var text: String
        /// Increases with every update; the rule with the lowest value is dropped first.
        var order: UInt64
        /// Milliseconds; as stored in the row.
        var writtenAt: Int64
    }

    private struct State {
        var rules: [String: Rule] = [:]
        var clock: UInt64 = 0
    }

    /// Milliseconds after which an unchanged rule is written again, to persist the order of the rules.
    private static let hour: Int64 = 3_600_000

    private let limit: Int
    private let state: Mutex<State>

    /// - Parameter stored: the stored rules, the least recently noted first.
    init(limit: Int, stored: [(path: String, rule: String, writtenAt: Int64)] = []) {
        self.limit = max(1, limit)
        var initial = State()
        for (path, rule, writtenAt) in stored.suffix(self.limit) {
            initial.clock += 1
            initial.rules[path] = Rule(text: rule, order: initial.clock, writtenAt: writtenAt)
        }
        state = Mutex(initial)
    }

    var isEmpty: Bool { state.withLock { $0.rules.isEmpty } }

    subscript(path: String) -> String? { state.withLock { $0.rules[path]?.text } }

    /// Sets the rule of a path, or removes it.
    /// - Returns: the paths with outdated rows.
    func note(_ rule: String?, of path: String, at moment: Int64) -> [String] {
        state.withLock { state in
            guard let rule else { return state.rules.removeValue(forKey: path) == nil ? [] : [path] }
            state.clock += 1
            if let known = state.rules[path], known.text == rule, moment - known.writtenAt < Self.hour {
                state.rules[path]?.order = state.clock
                return []
            }
            state.rules[path] = Rule(text: rule, order: state.clock, writtenAt: moment)
            guard state.rules.count > limit, let oldest = state.rules.min(by: { $0.value.order < $1.value.order })?.key else {
                return [path]
            }
            state.rules[oldest] = nil
            return [path, oldest]
        }
    }
}

// Query parameters that do not affect the response, by path, persisted across starts (No-Vary-Search).
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

// Permissions of upstreams for pages of other origins, persisted across starts (docs/caching.md#pages-of-other-origins).

/// The name of one remembered permission.
package struct OriginGrantName: Hashable, Sendable {
    /// The upstream, the page's origin or `*`, and the group of paths, a line each.
    let text: String

    /// - Parameters:
    ///   - page: The origin of pages as in the field `Origin`, or `*`.
    ///   - scope: `CrossOriginScope.name`.
    package init(upstream: OriginAddress, page: String, scope: String) { text = "\(upstream.url)\n\(page)\n\(scope)" }
}

extension CacheStore {
    /// Maximum bytes of a name and its permission together; a longer pair is not stored.
    static let originGrantBytes: Int = .kib(4)

    /// Returns the permission last noted. Callable on an event loop.
    package func originGrant(of name: OriginGrantName) -> CrossOriginGrant? {
        originGrants[name.text].flatMap { CrossOriginGrant(text: $0) }
    }

    /// Records a permission, or with nil that there is none. `originGrant` returns it at once; the database is written only when it changed,
    /// or to persist the order of use.
    /// - Throws: `DatabaseError`; the recorded permission then holds until the next start.
    package func noteOriginGrant(_ grant: CrossOriginGrant?, of name: OriginGrantName) async throws {
        let text = grant?.text
        let fits = text.map { name.text.utf8.count + $0.utf8.count <= Self.originGrantBytes } ?? true
        let now = clock().milliseconds
        let names = originGrants.note(fits ? text : nil, of: name.text, at: now)
        guard !names.isEmpty else { return }
        let row = SpaceRequest(rows: rowCost(Int64(Self.originGrantBytes)))
        let room = await reserve(row) ? Reservation(granted: row, of: footprint) : nil
        try await queue.commit { db in
            for name in names { try self.writeOriginGrant(of: name, at: now, hasRoom: room != nil, in: db) }
        }
        withExtendedLifetime(room) {}
    }

    /// Writes the permission that memory holds now, because concurrent updates may arrive here in either order.
    private func writeOriginGrant(of name: String, at moment: Int64, hasRoom: Bool, in db: Database) throws {
        guard hasRoom, let text = originGrants[name] else {
            return try db.cachedStatement(sql: "DELETE FROM origin_grant WHERE name = ?").execute(arguments: [name])
        }
        try db.cachedStatement(sql: "INSERT OR REPLACE INTO origin_grant (name, permission, used_at) VALUES (?, ?, ?)")
            .execute(arguments: [name, text, moment])
    }

    /// Returns the permissions stored before this start, the least recent first.
    static func storedOriginGrants(in db: Database) throws -> [(path: String, rule: String, writtenAt: Int64)] {
        try Row.fetchAll(db, sql: "SELECT name, permission, used_at FROM origin_grant ORDER BY used_at").map { row in
            var columns = RowReader(row)
            return (try columns.next(), try columns.next(), try columns.next())
        }
    }
}
