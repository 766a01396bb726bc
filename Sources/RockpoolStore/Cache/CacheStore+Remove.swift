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
        for (condition, arguments) in filter.conditions {
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
}

extension CacheFilter {
    /// SQL conditions that form the filter as a union; each finds its rows by an index.
    fileprivate var conditions: [(String, StatementArguments)] {
        switch self {
        case .urls(let urls): urls.map { ("url = ?", [$0]) }
        case .prefix(let prefix): [("url >= ? AND url < ?", [prefix, prefix + "\u{10FFFF}"])]
        case .category(let name): [("category = ?", [name])]
        case .group(let name, origin: nil): [("id IN (SELECT entry FROM entry_group WHERE name = ?)", [name])]
        case .group(let name, origin: let origin?):
            [("id IN (SELECT entry FROM entry_group WHERE name = ? AND origin = ?)", [name, origin.url])]
        case .matching(let selection): selection.conditions
        case .upstream(let origin): [("origin = ?", [origin.url])]
        case .identity(let name, origin: nil): [("identity = ? AND identity <> ''", [name])]
        case .identity(let name, origin: let origin?): [("identity = ? AND identity <> '' AND origin = ?", [name, origin.url])]
        case .all: [("id > 0", [])]
        }
    }
}
