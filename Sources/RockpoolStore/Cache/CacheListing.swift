// Lists of entries in the order of their URLs, one page at a time (docs/reference/admin-api.md#cache, `/v1/cache`).
import FoundationEssentials
import GRDB
package import RockpoolCore

/// One entry of a list.
package struct CacheListing: Hashable, Sendable {
    /// The id of its row; never reused.
    package var id: Int64
    package var url: String
    package var method: String
    package var category: String
    package var status: Int
    /// Bytes that the entry takes on the disk.
    package var bytes: Int64
    package var storedAt: Timestamp
    package var freshUntil: Timestamp
    package var lastUsedAt: Timestamp
    package var isPinned: Bool
    /// True if the entry belongs to an identity.
    package var isPrivate: Bool
    /// Number of entries of its URL, this one included: of every method, identity and variant.
    package var variants: Int

    /// The start of the page after this entry.
    package var cursor: CacheCursor { CacheCursor(url: url, id: id) }
}

/// A position in a list, which stays valid when entries are added or removed.
package struct CacheCursor: Hashable, Sendable {
    let url: String
    let id: Int64

    init(url: String, id: Int64) {
        self.url = url
        self.id = id
    }

    /// The cursor as an opaque token for clients: letters, digits, `-` and `_` only.
    package var text: String {
        Data("\(id) \(url)".utf8).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }

    /// Returns nil for a text that was not produced by `text`.
    package init?(text: String) {
        let standard = text.replacing("-", with: "+").replacing("_", with: "/")
        let padding = String(repeating: "=", count: (4 - standard.utf8.count % 4) % 4)
        guard let data = Data(base64Encoded: standard + padding), let plain = String(bytes: data, encoding: .utf8),
            let space = plain.firstIndex(of: " "), let id = Int64(plain[..<space])
        else { return nil }
        self.init(url: String(plain[plain.index(after: space)...]), id: id)
    }
}

extension CacheStore {
    /// Returns a page of entries, ordered by URL. The index of URLs, which contains the category, finds them.
    /// - Parameters:
    ///   - prefix: the prefix of the URLs; "" for all.
    ///   - category: the category of the entries; nil for all.
    ///   - cursor: the cursor of the last entry of the previous page; nil for the first page.
    ///   - limit: 1…1000.
    /// - Throws: `DatabaseError`, `UnreadableRow`.
    package func list(
        prefix: String = "", category: String? = nil, after cursor: CacheCursor? = nil, limit: Int = 100
    ) async throws -> [CacheListing] {
        let from = cursor.map { max($0.url, prefix) } ?? prefix
        return try await database.pool.read { db in
            let rows = try Row.fetchAll(
                db, sql: CacheListing.pageQuery,
                arguments: [
                    from, prefix + "\u{10FFFF}", cursor?.url ?? "", cursor?.id ?? 0, category, min(1000, max(1, limit)),
                ])
            let counting = try db.cachedStatement(sql: "SELECT count(*) FROM entry WHERE url = ?")
            var counts: [String: Int] = [:]
            return try rows.map { row in
                var listing = try CacheListing(row: row)
                if counts[listing.url] == nil { counts[listing.url] = try Int.fetchOne(counting, arguments: [listing.url]) }
                listing.variants = counts[listing.url] ?? 1
                return listing
            }
        }
    }

    /// Returns every entry of an absolute URL: each method, identity and variant, newest first; at most 1000.
    /// - Throws: `DatabaseError`, `UnreadableRow`.
    package func entries(ofURL url: String) async throws -> [CacheEntry] {
        try await database.pool.read { db in
            let statement = try db.cachedStatement(
                sql: "SELECT key, \(EntryRow.columns) FROM entry WHERE url = ? ORDER BY response_time DESC, id DESC LIMIT 1000")
            return try Row.fetchAll(statement, arguments: [url]).map { try EntryRow.keyed(from: $0) }
        }
    }
}

extension CacheListing {
    /// Arguments: lower URL bound, upper URL bound, the cursor's URL and id, category (NULL for all), limit.
    static let pageQuery = """
        SELECT id, url, key, category, status, bytes, stored_at, fresh_until, used_at, pinned, identity <> '' FROM entry
        WHERE url >= ?1 AND url < ?2 AND (url > ?3 OR id > ?4) AND (?5 IS NULL OR category = ?5)
        ORDER BY url, id LIMIT ?6
        """

    fileprivate init(row: Row) throws {
        var columns = RowReader(row)
        self.init(
            id: try columns.next(), url: try columns.next(), method: CacheKey(text: try columns.next())?.method ?? "",
            category: try columns.next(), status: try columns.next(), bytes: try columns.next(),
            storedAt: Timestamp(milliseconds: try columns.next()), freshUntil: Timestamp(milliseconds: try columns.next()),
            lastUsedAt: Timestamp(milliseconds: try columns.next()), isPinned: try columns.next(), isPrivate: try columns.next(),
            variants: 1)
    }
}
