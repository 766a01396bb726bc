// Writing: room first, then bytes, then the row (storage.md §2, §3).
import FoundationEssentials
import GRDB
package import RockpoolCore
import Synchronization

extension CacheStore {
    /// Room for a body and its row.
    /// - Returns: nil when there is none and eviction cannot make it, the body is larger than its category allows, the file
    ///   system is below `min_free`, or an unclean stop is still being tidied up.
    package func beginWrite(expectedLength: Int64?, category: Category) async -> CacheWriter? {
        let share = settings.cacheLimit.bytes.multipliedClamped(by: Int64(category.sharePercent)) / 100
        let maxLength = min(category.maxObject?.bytes ?? .max, share)
        let expected = expectedLength ?? 0
        guard expected >= 0, expected <= maxLength, !isSweeping else { return nil }
        let file = expected > Self.inlineLimit ? Cost.file(expected) : 0
        let row = Cost.row(expected > Self.inlineLimit ? 0 : expectedLength ?? Self.inlineLimit)
        guard await reserve(file.addedClamped(row)) else { return nil }
        let number = counters.withLock { counters in
            counters.nextFile += 1
            return counters.nextFile
        }
        return CacheWriter(
            store: self, number: number, expectedLength: expectedLength, maxLength: maxLength,
            fileRoom: Reservation(granted: file, of: footprint), rowRoom: Reservation(granted: row, of: footprint))
    }

    /// Asks the ledger, evicting as it says.
    func reserve(_ bytes: Int64) async -> Bool {
        let free = FreeSpace.bytes(at: directory).addedClamped(-footprint.ledger.reserved)
        guard free.addedClamped(-bytes) >= settings.minFree.bytes else { return false }
        // Others take room too: what was evicted for us may be gone when we ask again.
        for _ in 0..<4 {
            switch footprint.reserve(bytes) {
            case .granted: return true
            case .refused: return false
            case .evict: guard await evict(toFit: bytes) else { return false }
            }
        }
        return false
    }

    /// Makes a whole body an entry, in place of the variant it supersedes. The writer is used up whatever happens.
    /// - Throws: `IncompleteBody`, `FileError`, `DatabaseError`; nothing is stored then.
    package func commit(_ writer: consuming CacheWriter, key: CacheKey, response: StoredResponse) async throws -> CacheEntry {
        let fileRoom = writer.fileRoom
        let rowRoom = writer.rowRoom
        let finished = try writer.finish()
        var response = response
        response.bodyLength = finished.length
        if invalidations.happened(to: key.url, since: response.requestTime) { response.isInvalidated = true }
        let stored = response
        let entry = try await queue.commit(weight: finished.spool == nil ? finished.length + 4096 : 4096) { db in
            try self.insert(db, key: key, response: stored, body: finished, fileRoom: fileRoom)
        }
        footprint.release(rowRoom.take())
        memory.remove([key.text])
        if footprint.ledger.evictionGoal > 0 { evictInBackground() }
        return entry
    }

    private func insert(
        _ db: Database, key: CacheKey, response: StoredResponse, body: CacheWriter.Finished, fileRoom: Reservation
    ) throws -> CacheEntry {
        let now = clock()
        var row = EntryRow(key: key, response: response, bodyHash: body.hash, inlineBody: nil, bytes: 0)
        if let spool = body.spool {
            row.bytes = try adopt(spool, of: body, db, room: fileRoom)
        } else {
            row.inlineBody = body.small
            row.bytes = body.length + 1024
        }
        let wasPinned = try removeVariant(db, of: row)
        let lifetime = EntryLifetime(response, categories: categories)
        let id = try row.insert(db, lifetime: lifetime, origin: Self.origin(of: key.url), now: now, isPinned: wasPinned)
        try boundVariants(db, of: key)
        try dropUnusedBodies(db)
        return CacheEntry(
            id: id, key: key, response: response, storedAt: now, isPinned: wasPinned, bodyHash: body.hash,
            bodyIsInFile: body.spool != nil)
    }

    /// Equal bodies share one file: when there is one already, the new one is let go.
    private func adopt(_ spool: SpoolFile, of body: CacheWriter.Finished, _ db: Database, room: Reservation) throws -> Int64 {
        let known = try Int64.fetchOne(
            try db.cachedStatement(sql: "SELECT allocated FROM body WHERE sha = ?"), arguments: [body.hash.data])
        if let known, FileStatus.of(bodies.path(of: body.hash))?.size == body.length { return known }
        let allocated = try bodies.adopt(spool, hash: body.hash, reserved: room.take())
        if known == nil {
            try db.execute(
                sql: "INSERT INTO body (sha, length, allocated) VALUES (?, ?, ?)",
                arguments: [body.hash.data, body.length, allocated])
        }
        return allocated
    }

    private func removeVariant(_ db: Database, of row: EntryRow) throws -> Bool {
        let statement = try db.cachedStatement(sql: "DELETE FROM entry WHERE key_hash = ? AND variant = ? RETURNING pinned")
        let variant = Vary.variantKey(row.response.requestFields)
        return try Bool.fetchAll(statement, arguments: [EntryRow.keyHash(row.key), variant]).contains(true)
    }

    private func boundVariants(_ db: Database, of key: CacheKey) throws {
        let rows = try Leaving.fetch(
            db, where: "key_hash = ?", arguments: [EntryRow.keyHash(key)], order: "used_at DESC, id DESC",
            limit: Self.variantLimit + 8)
        try delete(Array(rows.dropFirst(Self.variantLimit)), db)
    }

    /// A validated response takes the place of what was stored; the body stays (RFC 9111 §3.2).
    package func freshen(_ entry: CacheEntry, as response: StoredResponse) async throws {
        let lifetime = EntryLifetime(response, categories: categories)
        let now = clock().milliseconds
        try await queue.commit { db in
            try db.execute(
                sql: """
                    UPDATE entry SET status = ?, fields = ?, request_time = ?, response_time = ?, assigned_ttl = ?, category = ?,
                        invalid = ?, used_at = ?, fresh_until = ?, kept_until = ? WHERE id = ?
                    """,
                arguments: [
                    response.head.status, FieldCodec.encode(response.head.fields), response.requestTime.milliseconds,
                    response.responseTime.milliseconds, response.assignedTTL?.milliseconds, response.category,
                    response.isInvalidated, now,
                    lifetime.freshUntil.milliseconds, lifetime.keptUntil.milliseconds, entry.id,
                ])
        }
        memory.remove([entry.key.text])
    }

    /// `scheme://authority` of an absolute URL: all before the third slash.
    static func origin(of url: String) -> String {
        url.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false).prefix(3).joined(separator: "/")
    }
}
