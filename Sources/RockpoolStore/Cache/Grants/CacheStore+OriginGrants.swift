// Permissions of upstreams for pages of other origins, persisted across starts (docs/caching.md#pages-of-other-origins).
import GRDB
package import RockpoolCore

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
