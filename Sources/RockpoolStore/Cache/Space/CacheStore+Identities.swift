// The copies of each identity: their number and size, and their removal (docs/outbox.md#forgotten).
import GRDB
package import RockpoolCore

/// The copies of one partition from one origin.
package struct IdentityCopies: Hashable, Sendable {
    /// The name of the partition.
    package var identity: String
    /// The origin as a URL.
    package var origin: String
    package var entries: Int
    /// The sum of their sizes.
    package var bytes: Int64
    /// When one of them was last used.
    package var usedAt: Timestamp
}

extension CacheStore {
    /// Returns the copies of every partition except the shared one.
    /// - Throws: `DatabaseError`, `UnreadableRow`.
    package func copiesByIdentity() async throws -> [IdentityCopies] {
        try await database.pool.read { db in
            let rows = try Row.fetchAll(
                db,
                sql: """
                    SELECT identity, origin, count(*), sum(bytes), max(used_at) FROM entry WHERE identity <> ''
                    GROUP BY identity, origin ORDER BY identity, origin
                    """)
            return try rows.map { row in
                var columns = RowReader(row)
                return IdentityCopies(
                    identity: try columns.next(), origin: try columns.next(), entries: try columns.next(), bytes: try columns.next(),
                    usedAt: Timestamp(milliseconds: try columns.next()))
            }
        }
    }

    /// Removes the copies of a partition, pinned or not. A response that was requested before is not stored in it any more.
    /// - Parameter origin: Nil removes the copies from every origin.
    /// - Throws: `DatabaseError`; entries removed before the error stay removed.
    package func forget(_ partition: StoragePartition, origin: OriginAddress? = nil) async throws -> RemovalCount {
        invalidations.note([.identity(partition.name)], at: clock())
        return try await remove(where: .identity(partition.name, origin: origin))
    }
}
