// Version 7 of the cache's tables: what upstreams permit to pages of other origins (docs/caching.md#pages-of-other-origins).
import GRDB

extension CacheSchema {
    /// `name` is the upstream's origin, the page's origin and the group of paths, a line each.
    static let addOriginGrants: @Sendable (Database) throws -> Void = { db in
        try db.execute(
            sql: """
                CREATE TABLE origin_grant (
                    name TEXT PRIMARY KEY,
                    permission TEXT NOT NULL,
                    used_at INTEGER NOT NULL
                ) STRICT, WITHOUT ROWID;
                """)
    }
}
