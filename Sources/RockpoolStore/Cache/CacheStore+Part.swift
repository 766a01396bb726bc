// Parts of bodies: kept side by side, continued by what is fetched later, joined when they touch (RFC 9111 §3.3, §3.4).
import GRDB
import NIOCore
package import RockpoolCore

extension CacheStore {
    /// Makes an entry of the bytes that a writer holds, which are not the whole. The writer is used up whatever happens.
    /// - Parameter describe: gives the response for a part of so many bytes, which is all that the writer holds: a 206 whose
    ///   `Content-Range` is of that length. Nil: it is not kept.
    /// - Throws: `IncompleteBody` when nothing was received, the writer is dead, or the head does not describe the part; `WholeIsStored`
    ///   when what is stored has these bytes; `FileError`, `DatabaseError`. Nothing is stored then.
    @discardableResult
    package func commitPart(
        _ writer: consuming CacheWriter, key: CacheKey, groups: [String] = [], describe: (Int64) -> StoredResponse?
    ) async throws -> CacheEntry? {
        let part = try await writer.finishPart()
        guard let response = describe(part.length) else { return nil }
        guard let range = response.part?.range, Int64(range.count) == part.length else { throw IncompleteBody() }
        return try await store(part, key: key, response: response, groups: groups)
    }

    /// Room for a body that begins with bytes of stored ones: a writer that already holds those, checked and copied, so that what is
    /// missing can be appended.
    /// - Parameters:
    ///   - slices: bytes of stored parts, in the order of the body.
    ///   - expectedLength: of the whole body.
    /// - Returns: nil when there is no room, as for `beginWrite(expectedLength:category:)`, or a stored body is gone or bad.
    package func beginWrite(
        joining slices: [(entry: CacheEntry, range: Range<Int64>)], expectedLength: Int64?, category: Category
    ) async -> CacheWriter? {
        let partition = slices.first?.entry.key.partition ?? .shared
        guard
            let writer = await beginWrite(
                expectedLength: expectedLength, category: category, partition: partition, isJoined: true)
        else { return nil }
        for slice in slices {
            guard let body = try? await body(of: slice.entry)?.slice(slice.range), (try? await copy(body, into: writer)) == true else {
                return nil
            }
        }
        return writer
    }

    /// Takes away the parts that are stored under a key.
    /// - Throws: `DatabaseError`.
    package func removeParts(of key: CacheKey) async throws {
        _ = try await take(dryRun: false) { db in
            try Leaving.fetch(
                db, where: "key_hash = ? AND key = ? AND part >= 0", arguments: [EntryRow.keyHash(key), key.text], limit: Self.partLimit + 8
            )
        }
    }

    /// - Returns: false when the writer does not take it.
    private func copy(_ body: CachedBody, into writer: CacheWriter) async throws -> Bool {
        for start in stride(from: Int64(0), to: body.length, by: Int(Self.copyStep)) {
            let range = start..<min(start + Self.copyStep, body.length)
            let bytes = try await read(range, of: body)
            guard bytes.readableBytes == range.count, try await writer.append(bytes) else { return false }
        }
        return true
    }

    /// Bytes copied at once.
    private static let copyStep: Int64 = 1_048_576

    // MARK: rows

    /// Takes away the stored parts of the same variant that `row`, a part, makes useless.
    /// - Returns: whether one of the variant's parts is pinned.
    /// - Throws: `WholeIsStored` when what is stored has every byte of it; `DatabaseError`, `UnreadableRow`.
    func removeParts(supersededBy row: EntryRow, _ db: Database) throws -> Bool {
        let variant = Vary.variantKey(row.response.requestFields)
        let statement = try db.cachedStatement(
            sql: "SELECT \(EntryRow.columns) FROM entry WHERE key_hash = ? AND variant = ? ORDER BY part")
        let known = try Row.fetchAll(statement, arguments: [EntryRow.keyHash(row.key), variant]).map { stored in
            var columns = RowReader(stored)
            return try EntryRow.entry(from: &columns, key: row.key)
        }
        for entry in known {
            let response = entry.response
            if response.part == nil || PartialResponse.holds(response, all: row.response.head) { throw WholeIsStored() }
        }
        let delete = try db.cachedStatement(sql: "DELETE FROM entry WHERE id = ?")
        for entry in known where PartialResponse.supersedes(row.response, entry.response) { try delete.execute(arguments: [entry.id]) }
        return known.contains(where: \.isPinned)
    }
}

/// What is stored already has every byte of a part.
package struct WholeIsStored: Error {}
