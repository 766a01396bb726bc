// Storing a response: reserve space, write the bytes, then the row (docs/storage.md#ledger, docs/storage.md#what-is-stored-where).
import FoundationEssentials
import GRDB
import Logging
import NIOCore
package import RockpoolCore
import Synchronization

extension CacheStore {
    /// Reserves space for a body and its row.
    /// - Returns: nil when eviction cannot make enough space, the body is larger than its category allows, the file system is below
    ///   `min_free`, or the sweep after an unclean stop is still running.
    /// - Parameter key: what the body is going to be stored under: a private body is sealed where that is configured, and an upstream may
    ///   have a quota.
    package func beginWrite(expectedLength: Int64?, category: CacheCategory, for key: CacheKey? = nil) async -> CacheWriter? {
        await beginWrite(expectedLength: expectedLength, category: category, for: key, isJoined: false)
    }

    /// - Parameter isJoined: true if the body comes from more than one transfer.
    func beginWrite(
        expectedLength: Int64?, category: CacheCategory, for key: CacheKey?, isJoined: Bool
    ) async -> CacheWriter? {
        let maxLength = largestBody(in: category, of: key?.url)
        let expected = expectedLength ?? 0
        guard expected >= 0, expected <= maxLength, isOpenForWrites else { return nil }
        let file = SpaceRequest(files: expected > Self.inlineLimit ? Cost.file(expected) : 0)
        let seal = seal.isSealing && key.map { $0.partition != .shared } ?? false ? seal : nil
        let inline = (expected > Self.inlineLimit ? 0 : expectedLength ?? Self.inlineLimit) + (seal == nil ? 0 : Int64(BodySeal.overhead))
        let row = SpaceRequest(rows: rowCost(inline))
        guard await reserve(SpaceRequest(files: file.files, rows: row.rows)) else { return nil }
        let number = counters.withLock { counters in
            counters.nextFile += 1
            return counters.nextFile
        }
        return CacheWriter(
            store: self, number: number, expectedLength: expectedLength, maxLength: maxLength, isJoined: isJoined, seal: seal,
            fileRoom: Reservation(granted: file, of: footprint), rowRoom: Reservation(granted: row, of: footprint))
    }

    /// Returns the reservation for a row of `length` bytes.
    func rowCost(_ length: Int64) -> Int64 { Cost.row(length, within: settings.cacheLimit.bytes) }

    /// Bytes by which a body of unknown length extends its reservation: larger than a chunk, so that the ledger is not called for each one,
    /// and a small part of a small cache.
    var growthStep: Int64 { min(.kib(256), max(.kib(32), settings.cacheLimit.bytes / 256)) }

    /// Reserves space in the ledger; waits for eviction when the ledger requires it.
    func reserve(_ room: SpaceRequest) async -> Bool {
        await bindWhenDue()
        return await self.room.reserve(room) { Task { await self.makeRoom() } }
    }

    /// Stores a whole body as an entry, in place of the variant it supersedes. The writer is consumed in any case; its readers continue.
    /// - Parameters:
    ///   - groups: names of the response's cache groups (RFC 9875 §2).
    ///   - mayLinger: true if nobody waits for the end.
    /// - Throws: `IncompleteBody`, `UnprovenBody`, `FileError`, `DatabaseError`, and for a 206 `WholeIsStored`. Nothing is stored after an
    ///   error. `UnsealedBody` when a private body was not begun as one.
    package func commit(
        _ writer: consuming CacheWriter, key: CacheKey, response: StoredResponse, groups: [String] = [], mayLinger: Bool = false
    ) async throws -> CacheEntry {
        try await store(try writer.finish(), key: key, response: response, groups: groups, mayLinger: mayLinger)
    }

    /// Writes the row of a completed body.
    func store(
        _ body: CacheWriter.Finished, key: CacheKey, response: StoredResponse, groups: [String], mayLinger: Bool = false
    ) async throws -> CacheEntry {
        guard !seal.isSealing || key.partition == .shared || body.owner.seal != nil else { throw UnsealedBody() }
        try await prove(body, of: response.head, under: key)
        let body = try await packed(body, of: response.head)
        let weight = .kib(4) * Int64(1 + min(groups.count, Self.groupLimit)) + Int64(body.small.count)
        let origin = Self.origin(of: key.url)
        let (entry, isReplacement, exceedsQuota) = try await watched {
            // A body's file becomes the entry's while the job runs.
            try await queue.commit(weight: weight, isRepeatable: body.spool == nil, mayLinger: mayLinger) { db in
                var response = response
                response.bodyLength = body.length
                let keyHash = EntryRow.keyHash(key)
                let (isNew, isDue) = self.keys.note(keyHash, url: key.url)
                if isDue { self.readKeysInBackground() }
                if self.invalidations.happened(toAny: [.identity(key.identity)], since: response.asked) { throw IdentityForgotten() }
                if self.wasInvalidated(key, groups: groups, since: response.asked) { response.isInvalidated = true }
                try self.noteOwnWrites(on: &response, of: key, in: db)
                self.invalidations.noteStored(Self.path(of: key.url))
                let (entry, isReplacement) = try self.insert(
                    in: db, key: key, hash: keyHash, isNew: isNew, response: response, body: body, groups: groups)
                return (entry, isReplacement, try self.exceedsQuota(origin, in: db))
            }
        }
        footprint.release(body.owner.rowRoom.take())
        memory.remove([key.text])
        note(isReplacement ? .replaced : .stored, of: key.url)
        if exceedsQuota { await keepQuota(of: origin) }
        if footprint.ledger.isEvictionDue { Task { await evictToLowMark() } }
        return entry
    }

    /// - Parameters:
    ///   - hash: `EntryRow.keyHash` of the key.
    ///   - isNew: true if no entry of the key is stored.
    private func insert(
        in db: Database, key: CacheKey, hash: Data, isNew: Bool, response: StoredResponse, body: CacheWriter.Finished, groups: [String]
    ) throws -> (CacheEntry, isReplacement: Bool) {
        let now = clock()
        let origin = Self.origin(of: key.url)
        var row = EntryRow(key: key, response: response, bodyHash: body.hash, inlineBody: nil, bytes: 0, keyHash: hash)
        // Runs before `adopt`, because changes to files are not rolled back.
        let isPart = response.head.status == 206
        let pins: [Bool]
        var uses = CacheSchema.unread
        if isNew {
            pins = []
        } else if isPart {
            pins = [try removeParts(supersededBy: row, in: db)]
        } else {
            let removed = try removeVariant(in: db, of: row)
            pins = removed.map(\.isPinned)
            if let most = removed.map(\.uses).max() { uses = max(uses, most).addedClamped(1) }
        }
        let wasPinned = pins.contains(true)
        if let spool = body.spool {
            (row.bytes, row.bodyCoding) = try adopt(spool, of: body, in: db)
        } else {
            row.inlineBody = body.small
            row.bytes = Int64(body.small.count) + .kib(1)
            row.bodyCoding = body.coding
        }
        let isPinned = try wasPinned && mayStayPinned(row, in: db)
        let lifetime = EntryLifetime(response, categories: categories)
        if counters.withLock({ $0.evictedKeys.take(key.text) }) { uses = max(uses, CacheSchema.unread + 1) }
        let id = try row.insert(in: db, index: index, lifetime: lifetime, origin: origin, now: now, isPinned: isPinned, uses: uses)
        if !groups.isEmpty { try setGroups(groups, of: id, origin: origin, in: db) }
        let removesVariants = try !isNew && boundVariants(in: db, of: key)
        if removesVariants || !pins.isEmpty { try dropUnusedBodies(in: db) }
        let entry = CacheEntry(
            id: id, key: key, response: response, storedAt: now, isPinned: isPinned, bodyHash: body.hash,
            bodyIsInFile: body.spool != nil, bodyCoding: row.bodyCoding)
        return (entry, !isPart && !pins.isEmpty)
    }

    /// Makes the spool the body's file. Equal bodies share one file: when it already exists, the new file is discarded.
    private func adopt(
        _ spool: SpoolFile, of body: CacheWriter.Finished, in db: Database
    ) throws -> (bytes: Int64, coding: StoredCoding) {
        let known = try BodyRow.fetch(body.hash, in: db)
        if let known, FileStatus.of(bodies.path(of: body.hash))?.size == known.stored { return (known.allocated, known.coding) }
        let stored = spool.length
        let allocated = try bodies.adopt(spool, hash: body.hash, reserved: body.fileRoom.take().files, counted: known?.allocated ?? 0)
        // A deflated body is a separate file that the writer does not read, so it needs no lease.
        if !body.coding.isDeflated, let lease = lease(body.hash) { body.owner.hold(lease) }
        try BodyRow(length: body.length, allocated: allocated, coding: body.coding, stored: stored)
            .write(as: body.hash, replacing: known, in: db)
        return (allocated, body.coding)
    }

    /// Removes the stored entries of the variant, whole or in parts.
    /// - Returns: for each removed entry, whether it was pinned, and its `uses`.
    private func removeVariant(in db: Database, of row: EntryRow) throws -> [(isPinned: Bool, uses: Int64)] {
        let statement = try db.cachedStatement(sql: "DELETE FROM entry WHERE key_hash = ? AND variant = ? RETURNING pinned, uses, id")
        let variant = Vary.variantKey(row.response.requestFields)
        return try Row.fetchAll(statement, arguments: [row.keyHash, variant]).map { row in
            var columns = RowReader(row)
            let (isPinned, uses): (Bool, Int64) = (try columns.next(), try columns.next())
            let id: Int64 = try columns.next()
            // Some uses are not written back yet.
            return (isPinned, uses.addedClamped(recency.withLock { $0.removeValue(forKey: id)?.count } ?? 0))
        }
    }

    /// Removes the least used variants and parts of a key that has too many. Three quarters are for those that were used since they were
    /// stored: who asks for new ones does not displace them.
    /// - Returns: true if it may have removed any.
    private func boundVariants(in db: Database, of key: CacheKey) throws -> Bool {
        let count = try db.cachedStatement(sql: "SELECT count(*) FROM entry WHERE key_hash = ?")
        guard let stored = try Int.fetchOne(count, arguments: [EntryRow.keyHash(key)]), stored > min(Self.variantLimit, Self.partLimit)
        else {
            return false
        }
        for (condition, limit) in [("part = -1", Self.variantLimit), ("part >= 0", Self.partLimit)] {
            let rows = try EvictionCandidate.fetch(
                in: db, where: "key_hash = ? AND \(condition)", arguments: [EntryRow.keyHash(key)], order: "used_at DESC, id DESC",
                limit: limit + 8)
            // Some uses are not written back yet.
            let known = recency.withLock { recency in Set(rows.filter { !$0.isOnProbation || recency[$0.id] != nil }.map(\.id)) }
            let used = Set(rows.lazy.map(\.id).filter(known.contains).prefix(limit / 4 * 3))
            let others = rows.filter { !used.contains($0.id) }
            try delete(Array(others.dropFirst(limit - used.count)), in: db)
        }
        return true
    }

    /// Replaces the stored response by a revalidated one; the body stays (RFC 9111 §3.2). An entry invalidated since the revalidation was
    /// sent stays invalidated. An entry in memory is replaced there, and its row is written later, with others; if that fails, the row states
    /// the earlier response, which is validated again.
    /// - Parameter groups: names of its cache groups; nil keeps the present ones.
    /// - Throws: `DatabaseError`.
    package func freshen(_ entry: CacheEntry, as response: StoredResponse, groups: [String]? = nil) async throws {
        if let groups, freshenInMemory(entry, as: response, groups: groups) { return }
        let freshening = Freshening(entry: entry, response: response, groups: groups)
        try await queue.commit(weight: freshening.weight) { db in
            // What waits for the same row is older.
            _ = self.freshenings.withLock { $0.removeValue(forKey: entry.id) }
            _ = try self.write(freshening, in: db)
        }
        memory.remove([entry.key.text])
    }

    /// The same for an entry in memory. Callable on an event loop; false if the row must be written at once, and nothing has changed.
    package func freshenInMemory(_ entry: CacheEntry, as response: StoredResponse, groups: [String]) -> Bool {
        guard mayWriteLater(entry) else { return false }
        // Read first: what is invalidated after it was looked for is seen by its removal from memory.
        let epoch = memory.epoch(of: entry.key)
        let response = marked(response, of: entry.key, groups: groups)
        guard memory.replace(entry, by: response, epoch: epoch) else { return false }
        writeLater(Freshening(entry: entry, response: response, groups: groups))
        return true
    }

    /// A revalidated response whose row is to be written.
    struct Freshening: Sendable {
        /// Maximum number of those that wait; beyond it each is awaited.
        static let limit = 1024

        let entry: CacheEntry
        let response: StoredResponse
        let groups: [String]?

        fileprivate var weight: Int64 { .kib(4) * Int64(1 + min(groups?.count ?? 0, CacheStore.groupLimit)) }
    }

    private func mayWriteLater(_ entry: CacheEntry) -> Bool {
        freshenings.withLock { $0.count < Freshening.limit || $0[entry.id] != nil }
    }

    /// Writes the row of an entry together with others; of several responses to one entry the last one.
    private func writeLater(_ freshening: Freshening) {
        let id = freshening.entry.id
        let isWaiting = freshenings.withLock { $0.updateValue(freshening, forKey: id) != nil }
        guard !isWaiting else { return }
        queue.submit(weight: freshening.weight, mayLinger: true) { db in
            guard let last = self.freshenings.withLock({ $0.removeValue(forKey: id) }) else { return true }
            return try self.write(last, in: db) == last.response
        } answer: { [self] result in
            switch result {
            case .success(true): break
            // It was invalidated after it was replaced in memory.
            case .success(false): memory.remove([freshening.entry.key.text])
            case .failure(let error):
                // It may not have run: then the next one is to be written anew.
                _ = freshenings.withLock { $0.removeValue(forKey: id) }
                logger.warning("a validated copy was not written", metadata: ["error": "\(error)"])
            }
        }
    }

    /// - Returns: the response as it is written.
    private func write(_ freshening: Freshening, in db: Database) throws -> StoredResponse {
        let (id, key) = (freshening.entry.id, freshening.entry.key)
        let known =
            try freshening.groups
            ?? String.fetchAll(try db.cachedStatement(sql: "SELECT name FROM entry_group WHERE entry = ?"), arguments: [id])
        let response = marked(freshening.response, of: key, groups: known)
        if try update(in: db, id, to: response), let groups = freshening.groups {
            try setGroups(groups, of: id, origin: Self.origin(of: key.url), in: db)
        }
        return response
    }

    /// The response with the marks of what has happened to its URL since it was asked for.
    private func marked(_ response: StoredResponse, of key: CacheKey, groups: [String]) -> StoredResponse {
        var response = response
        if wasInvalidated(key, groups: groups, since: response.asked) { response.isInvalidated = true }
        let path = Self.path(of: key.url)
        invalidations.noteStored(path)
        if let at = invalidations.ownWrite(to: path, since: response.asked, isNearby: key.isOfGet) {
            response.ownWrite = OwnWriteMark(at: at, isIncluded: false)
        }
        return response
    }

    /// - Returns: true if the entry still exists.
    private func update(in db: Database, _ entry: Int64, to response: StoredResponse) throws -> Bool {
        let lifetime = EntryLifetime(response, categories: categories)
        let variant = Vary.variantKey(response.requestFields)
        // A changed `Vary` makes the entry another variant, which replaces the entry already stored as that variant.
        let other = try db.cachedStatement(
            sql: """
                DELETE FROM entry WHERE variant = ?1 AND id <> ?2 AND key_hash = (SELECT key_hash FROM entry WHERE id = ?2)
                    AND (SELECT part FROM entry WHERE id = ?2) IN (-1, part)
                """)
        try other.execute(arguments: [variant, entry])
        if db.changesCount > 0 { try dropUnusedBodies(in: db) }
        let statement = try db.cachedStatement(
            sql: """
                UPDATE entry SET variant = ?, request_fields = ?, status = ?, fields = ?, request_time = ?, asked = ?, response_time = ?, assigned_ttl = ?, category = ?,
                    invalid = ?, used_at = ?, fresh_until = ?, kept_until = ?, own_write_at = ?, own_write_included = ? WHERE id = ?
                """)
        try statement.execute(arguments: [
            variant, FieldCodec.encode(response.requestFields), response.head.status, FieldCodec.encode(response.head.fields),
            response.requestTime.milliseconds, response.asked.number,
            response.responseTime.milliseconds, response.assignedTTL?.milliseconds, response.category, response.isInvalidated,
            clock().milliseconds, lifetime.freshUntil.milliseconds, lifetime.keptUntil.milliseconds, response.ownWrite?.at.number,
            response.ownWrite?.isIncluded ?? false, entry,
        ])
        return db.changesCount > 0
    }

    /// Returns `scheme://authority` of an absolute URL: the part before the third slash.
    static func origin(of url: String) -> String {
        var slashes = 0
        let end = url.utf8.firstIndex { byte in
            if byte == UInt8(ascii: "/") { slashes += 1 }
            return slashes == 3
        }
        return String(url[..<(end ?? url.endIndex)])
    }

    // MARK: - Parts
    // Parts of bodies: kept side by side, completed by later transfers, joined when they touch (RFC 9111 §3.3, §3.4).

    /// Stores the incomplete body that a writer holds as an entry. The writer is consumed in any case.
    /// - Parameter describe: returns the response for a part of the given length, which is all that the writer holds: a 206 whose
    ///   `Content-Range` covers that length. When it returns nil, the part is discarded.
    /// - Throws: `IncompleteBody` when nothing was received, the writer is dead, or the head does not describe the part; `WholeIsStored`
    ///   when a stored entry already has these bytes; `FileError`, `DatabaseError`. Nothing is stored after an error.
    @discardableResult
    package func commitPart(
        _ writer: consuming CacheWriter, key: CacheKey, groups: [String] = [], describe: (Int64) -> StoredResponse?
    ) async throws -> CacheEntry? {
        let part = try await writer.finishPart()
        guard let response = describe(part.length) else { return nil }
        guard let range = response.part?.range, Int64(range.count) == part.length else { throw IncompleteBody() }
        return try await store(part, key: key, response: response, groups: groups)
    }

    /// Begins a body that starts with bytes of stored bodies: the returned writer already contains them, checked and copied, and the
    /// missing bytes can be appended.
    /// - Parameters:
    ///   - slices: bytes of stored parts, in the order of the body.
    ///   - expectedLength: the length of the whole body.
    /// - Returns: nil when there is no space, as for `beginWrite(expectedLength:category:)`, or when a stored body is missing or damaged.
    package func beginWrite(
        joining slices: [(entry: CacheEntry, range: Range<Int64>)], expectedLength: Int64?, category: CacheCategory
    ) async -> CacheWriter? {
        let key = slices.first?.entry.key
        guard let writer = await beginWrite(expectedLength: expectedLength, category: category, for: key, isJoined: true) else {
            return nil
        }
        for slice in slices {
            guard let body = try? await body(of: slice.entry)?.slice(slice.range), (try? await copy(body, into: writer)) == true else {
                return nil
            }
        }
        return writer
    }

    /// Removes the parts stored under a key.
    /// - Throws: `DatabaseError`.
    package func removeParts(of key: CacheKey) async throws {
        _ = try await take(dryRun: false) { db in
            try EvictionCandidate.fetch(
                in: db, where: "key_hash = ? AND key IN (?, ?) AND part >= 0", arguments: self.index.arguments(of: key),
                limit: Self.partLimit + 8
            )
        }
    }

    /// - Returns: false when the writer refuses the bytes.
    private func copy(_ body: CachedBody, into writer: CacheWriter) async throws -> Bool {
        for start in stride(from: Int64(0), to: body.length, by: Int(Self.copyStep)) {
            let range = start..<min(start + Self.copyStep, body.length)
            let bytes = try await read(range, of: body)
            guard bytes.readableBytes == range.count, try await writer.append(bytes) else { return false }
        }
        return true
    }

    /// Bytes copied at once.
    private static let copyStep: Int64 = .mib(1)

    // MARK: - Rows

    /// Removes the stored parts of the same variant that the new part `row` supersedes.
    /// - Returns: true if a stored part of the variant is pinned.
    /// - Throws: `WholeIsStored` when a stored entry contains every byte of `row`; `DatabaseError`, `UnreadableRow`.
    func removeParts(supersededBy row: EntryRow, in db: Database) throws -> Bool {
        let variant = Vary.variantKey(row.response.requestFields)
        let statement = try db.cachedStatement(
            sql: "SELECT \(EntryRow.columns) FROM entry WHERE key_hash = ? AND variant = ? ORDER BY part")
        let known = try Row.fetchAll(statement, arguments: [row.keyHash, variant]).map { stored in
            var columns = RowReader(stored)
            return try EntryRow.entry(from: &columns, key: row.key)
        }
        for entry in known {
            let response = entry.response
            if response.part == nil || PartialResponse.holds(response, all: row.response.head) { throw WholeIsStored() }
        }
        let delete = try db.cachedStatement(sql: "DELETE FROM entry WHERE id = ?")
        for entry in known where PartialResponse.supersedes(row.response, old: entry.response) { try delete.execute(arguments: [entry.id]) }
        return known.contains(where: \.isPinned)
    }
}

/// Thrown when a stored entry already contains every byte of a part.
package struct WholeIsStored: Error {}

/// A private body was written as one that anybody may have, though private ones are to lie sealed.
struct UnsealedBody: Error {}
