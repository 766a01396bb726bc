// The copies of each identity: their number and size, their removal (docs/outbox.md#forgotten), and their way to another name of it
// (docs/caching.md#partitions *Identity*).
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
        invalidations.note([.identity(partition.name)], at: ticks.next())
        return try await remove(where: .identity(partition.name, origin: origin))
    }

    /// Moves the copies of a partition to another one, of the same client under another name. Of two copies of one variant the newer stays.
    /// - Throws: `DatabaseError`; entries moved before the error stay moved.
    package func move(_ partition: String, to other: String) async throws {
        guard partition != other, !partition.isEmpty, !other.isEmpty else { return }
        while true {
            let moved = try await queue.commit(weight: .kib(Int64(batchRows))) { db in
                let rows = try Row.fetchAll(
                    db, sql: "SELECT id, key FROM entry WHERE identity = ? AND identity <> '' LIMIT ?",
                    arguments: [partition, self.batchRows])
                let moved = try rows.flatMap { row in
                    var columns = RowReader(row)
                    return try self.move(columns.next(Int64.self), key: columns.next(), to: other, in: db)
                }
                if !rows.isEmpty { try self.dropUnusedBodies(in: db) }
                return moved
            }
            guard !moved.isEmpty else { return }
            memory.remove(moved)
        }
    }

    /// - Returns: the keys of which memory may hold something that has changed.
    private func move(_ id: Int64, key text: String, to partition: String, in db: Database) throws -> [String] {
        guard let old = CacheKey(text: text) else {
            try db.execute(sql: "DELETE FROM entry WHERE id = ?", arguments: [id])
            return [text]
        }
        let key = CacheKey(old, in: .identity(partition)), hash = EntryRow.keyHash(key)
        try db.execute(
            sql: """
                DELETE FROM entry WHERE key_hash = ?1 AND id <> ?2 AND EXISTS (
                    SELECT 1 FROM entry AS moved WHERE moved.id = ?2 AND moved.variant = entry.variant
                        AND moved.part IN (-1, entry.part) AND moved.response_time >= entry.response_time)
                """, arguments: [hash, id])
        try db.execute(
            sql: "UPDATE OR IGNORE entry SET key_hash = ?, key = ?, identity = ? WHERE id = ?", arguments: [hash, key.text, partition, id])
        if db.changesCount == 0 { try db.execute(sql: "DELETE FROM entry WHERE id = ?", arguments: [id]) }
        if keys.note(hash, url: key.url).isDue { readKeysInBackground() }
        return [text, key.text]
    }
}
