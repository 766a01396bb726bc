// Removal of entries: rows first, files after the commit, so that a crash in between leaves only a harmless file
// (docs/storage.md#eviction).
import FoundationEssentials
import GRDB
package import RockpoolCore
import Synchronization

extension CacheStore {
    /// Rows of one transaction: at most 200, fewer where a small limit leaves the log little space.
    var batchRows: Int { min(200, max(8, database.checkpointFrames / 5)) }

    /// True if a URL was invalidated after a request had been sent.
    package func wasInvalidated(_ url: String, since sent: Tick) -> Bool { invalidations.happened(toAny: [.url(url)], since: sent) }

    /// Removes the entries that match the filter, pinned or not, in batches.
    /// - Parameter dryRun: counts by the same selection and changes nothing.
    package func remove(where filter: CacheFilter, dryRun: Bool = false) async throws -> RemovalCount {
        var removed = RemovalCount()
        for (condition, arguments) in filter.conditions(index) {
            var last: Int64 = 0
            while true {
                let (from, most) = (last, dryRun ? batchRows : await pace.next().rows(of: batchRows))
                let rows = try await take(dryRun: dryRun, as: .purged) { db in
                    try EvictionCandidate.fetch(in: db, where: "\(condition) AND id > ?", arguments: arguments + [from], limit: most)
                }
                guard let end = rows.last?.id else { break }
                last = end
                removed.entries += rows.count
                removed.bytes += rows.reduce(0) { $0 + $1.bytes }
            }
        }
        return removed
    }

    /// Selects and deletes rows in one transaction, then removes them from memory.
    /// - Parameter event: the event to record for their URLs.
    func take(
        dryRun: Bool, as event: KeyEvents.Event? = nil, _ select: @escaping @Sendable (Database) throws -> [EvictionCandidate]
    ) async throws -> [EvictionCandidate] {
        if dryRun { return try await database.pool.read { try select($0) } }
        let rows = try await queue.commit { db in
            let rows = try select(db)
            try self.delete(rows, in: db)
            return rows
        }
        memory.remove(rows.map(\.key))
        if let event { note(event, of: rows) }
        return rows
    }

    /// Deletes rows, and the bodies that no row references any more.
    /// - Parameter deadline: no row but the first is started after it; nil: all rows are deleted.
    /// - Returns: the deleted rows, a prefix of `rows`.
    @discardableResult
    func delete(_ rows: [EvictionCandidate], until deadline: ContinuousClock.Instant? = nil, in db: Database) throws -> [EvictionCandidate]
    {
        guard !rows.isEmpty else { return [] }
        let statement = try db.cachedStatement(sql: "DELETE FROM entry WHERE id = ?")
        var gone: [EvictionCandidate] = []
        for row in rows {
            if let deadline, !gone.isEmpty, ContinuousClock.now > deadline { break }
            try statement.execute(arguments: [row.id])
            gone.append(row)
        }
        recency.withLock { recency in gone.forEach { recency[$0.id] = nil } }
        try dropUnusedBodies(in: db)
        return gone
    }

    /// Deletes the rows of unreferenced bodies. Their files are unlinked after the commit, when the last reader has finished.
    func dropUnusedBodies(in db: Database) throws {
        let statement = try db.cachedStatement(sql: "DELETE FROM body WHERE refs = 0 RETURNING sha, allocated")
        for row in try Row.fetchAll(statement) {
            var columns = RowReader(row)
            bodies.suspect(Array(try columns.next(Data.self)), counted: try columns.next())
        }
    }

    // The copies of each identity: their number and size, their removal (docs/outbox.md#forgotten), and their way to another name of it
    // (docs/caching.md#partitions *Identity*).

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
        guard let old = CacheKey(text: index.opened(text)) else {
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
            sql: "UPDATE OR IGNORE entry SET key_hash = ?, key = ?, identity = ? WHERE id = ?",
            arguments: [hash, index.sealed(key).text, partition, id])
        if db.changesCount == 0 { try db.execute(sql: "DELETE FROM entry WHERE id = ?", arguments: [id]) }
        if keys.note(hash, url: key.url).isDue { readKeysInBackground() }
        return [text, key.text]
    }
}

extension CacheFilter {
    /// SQL conditions that form the filter as a union; each finds its rows by an index.
    fileprivate func conditions(_ index: IndexSeal) -> [(String, StatementArguments)] {
        switch self {
        case .urls(let urls): urls.flatMap(index.forms).map { ("url = ?", [$0]) }
        case .prefix(let prefix): index.forms(of: prefix).map { ("url >= ? AND url < ?", [$0, $0 + "\u{10FFFF}"]) }
        case .category(let name): [("category = ?", [name])]
        case .group(let name, origin: nil): [("id IN (SELECT entry FROM entry_group WHERE name = ?)", [name])]
        case .group(let name, origin: let origin?):
            [("id IN (SELECT entry FROM entry_group WHERE name = ? AND origin = ?)", [name, origin.url])]
        case .matching(let selection): selection.conditions(index)
        case .upstream(let origin): [("origin = ?", [origin.url])]
        case .identity(let name, origin: nil): [("identity = ? AND identity <> ''", [name])]
        case .identity(let name, origin: let origin?): [("identity = ? AND identity <> '' AND origin = ?", [name, origin.url])]
        case .all: [("id > 0", [])]
        }
    }
}

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
