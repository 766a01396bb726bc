// Parts of bodies: kept side by side, completed by later transfers, joined when they touch (RFC 9111 §3.3, §3.4).
import GRDB
import NIOCore
package import RockpoolCore

extension CacheStore {
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
                in: db, where: "key_hash = ? AND key = ? AND part >= 0", arguments: [EntryRow.keyHash(key), key.text],
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

    // MARK: rows

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
