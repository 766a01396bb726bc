// Marks of copies that an own write has made out of date, and the copies that take their place (docs/outbox.md#effects).
import GRDB
package import NIOCore
package import RockpoolCore

extension CacheStore {
    /// Marks every entry of these absolute URLs, and of the same paths with a query, as older than a write. In the writer's own partitions
    /// they count as copies without its effect until another copy replaces them; in other partitions they must be revalidated. Responses
    /// to requests that were sent before count likewise.
    /// - Parameters:
    ///   - partitions: those that the writer reads.
    ///   - now: the time of the write's answer.
    /// - Throws: `DatabaseError`.
    package func markOwnWrite(urls: [String], partitions: [StoragePartition], at now: Timestamp) async throws {
        invalidations.note(urls.map { .path($0) }, at: now)
        let names = partitions.map(\.name)
        let keys = try await queue.commit { db in
            let statement = try db.cachedStatement(
                sql: """
                    UPDATE entry SET invalid = 1, fresh_until = min(fresh_until, ?1),
                        own_write_at = iif(identity IN (?4, ?5), ?1, own_write_at),
                        own_write_included = iif(identity IN (?4, ?5), 0, own_write_included)
                    WHERE url = ?2 OR (url >= ?3 || '?' AND url < ?3 || '@') RETURNING key
                    """)
            return try urls.flatMap { url in
                try String.fetchAll(statement, arguments: [now.milliseconds, url, url, names.first ?? "", names.last ?? ""])
            }
        }
        memory.remove(keys)
    }

    /// Returns the entries of the URL, and of the same path with a query, that have a whole body and are in one of these partitions; the
    /// newest first.
    /// - Throws: `DatabaseError` or `UnreadableRow`.
    package func copies(ofPath url: String, in partitions: [StoragePartition], limit: Int) async throws -> [CacheEntry] {
        let names = partitions.map(\.name)
        return try await database.pool.read { db in
            let statement = try db.cachedStatement(
                sql: """
                    SELECT key, \(EntryRow.columns) FROM entry
                    WHERE (url = ?1 OR (url >= ?1 || '?' AND url < ?1 || '@')) AND identity IN (?2, ?3) AND part = -1
                    ORDER BY response_time DESC, id DESC LIMIT ?4
                    """)
            return try Row.fetchAll(statement, arguments: [url, names.first ?? "", names.last ?? "", limit]).map(EntryRow.keyed)
        }
    }

    /// Stores a body that is at hand under a key, in place of the variant it supersedes.
    /// - Returns: false if there is no space, or nothing may be written now.
    /// - Throws: as `commit`.
    package func replace(
        _ key: CacheKey, by response: StoredResponse, body: ByteBuffer, category: CacheCategory
    ) async throws -> Bool {
        let length = Int64(body.readableBytes)
        // The first moments after an unclean stop belong to the sweep, and no copy can be fetched in the place of this one.
        for _ in 0..<30 where isSweeping { try? await Task.sleep(for: .milliseconds(100)) }
        guard let writer = await beginWrite(expectedLength: length, category: category, partition: key.partition),
            try await writer.append(body)
        else { return false }
        _ = try await commit(writer, key: key, response: response)
        return true
    }
}
