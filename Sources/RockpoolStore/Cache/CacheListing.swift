// Lists of entries in the order of their URLs, one page at a time (docs/reference/admin-api.md#cache, `/v1/cache`).
import FoundationEssentials
import GRDB
package import RockpoolCore
import Synchronization

/// One entry of a list.
package struct CacheListing: Hashable, Sendable {
    /// The id of its row; never reused.
    package var id: Int64
    package var url: String
    /// The URL as it is shown, with its secrets sealed; commands take it.
    package var shownURL: String
    package var method: String
    package var category: String
    package var status: Int
    /// Bytes that the entry takes on the disk.
    package var bytes: Int64
    package var storedAt: Timestamp
    package var freshUntil: Timestamp
    package var lastUsedAt: Timestamp
    package var isPinned: Bool
    /// The name of the identity to which the entry belongs; empty if it is shared.
    package var identity: String
    /// True if the entry belongs to an identity.
    package var isPrivate: Bool { !identity.isEmpty }
    /// Number of entries of its URL, this one included: of every method, identity and variant.
    package var variants: Int

    /// How often it, and the versions that it replaced, was read since it was stored.
    package var hits: Int64
    /// The value by which the list is ordered.
    private var place: String

    /// The start of the page after this entry.
    package var cursor: CacheCursor { CacheCursor(place: place, id: id) }
}

extension CacheListing {
    static let columns =
        "id, url, key, category, status, bytes, stored_at, fresh_until, used_at, pinned, identity, uses"

    /// Reads `columns` and the value by which the list is ordered.
    init(row: Row, _ index: IndexSeal) throws {
        var columns = RowReader(row)
        let (id, stored): (Int64, String) = (try columns.next(), try columns.next())
        self.init(
            id: id, url: index.opened(stored), shownURL: index.sealed(stored), method: CacheKey(text: try columns.next())?.method ?? "",
            category: try columns.next(), status: try columns.next(), bytes: try columns.next(),
            storedAt: Timestamp(milliseconds: try columns.next()), freshUntil: Timestamp(milliseconds: try columns.next()),
            lastUsedAt: Timestamp(milliseconds: try columns.next()), isPinned: try columns.next(), identity: try columns.next(),
            variants: 1, hits: max(0, CacheSchema.requests(try columns.next()) - 1), place: try columns.next())
    }
}

// MARK: - Filters

/// A filter of lists; every criterion that is set must hold.
package struct CacheListFilter: Hashable, Sendable {
    /// The order of a list.
    package enum Order: String, CaseIterable, Sendable {
        case url
        /// The largest first.
        case size
        /// The oldest first.
        case age
        /// The most read first.
        case hits

        /// The column, and the direction in which its values follow.
        fileprivate var column: (name: String, isRising: Bool) {
            switch self {
            case .url: ("url", true)
            case .size: ("bytes", false)
            case .age: ("stored_at", true)
            case .hits: ("uses", false)
            }
        }
    }

    /// The beginning of the URLs.
    package var prefix = ""
    package var category: String?
    /// A text within the URLs.
    package var text: String?
    /// Statuses, each a range; empty: all.
    package var statuses: [ClosedRange<Int>] = []
    /// Only what was stored before.
    package var storedBefore: Timestamp?
    package var isPinned: Bool?
    /// True for stale or invalidated entries, false for the others.
    package var isStale: Bool?
    package var order = Order.url

    /// Every entry, by URL.
    package init() {}

    /// The condition of all pages.
    func condition(at now: Timestamp) -> RowCondition {
        var condition = RowCondition("url >= ? AND url < ?", [prefix, prefix + "\u{10FFFF}"])
        if let category { condition = condition && RowCondition("category = ?", [category]) }
        if let text { condition = condition && RowCondition("instr(url, ?) > 0", [text]) }
        if !statuses.isEmpty {
            let ranges = statuses.map { RowCondition("status BETWEEN ? AND ?", [$0.lowerBound, $0.upperBound]) }
            condition = condition && ranges.reduce(.never, ||)
        }
        if let storedBefore { condition = condition && RowCondition("stored_at < ?", [storedBefore.milliseconds]) }
        if let isPinned { condition = condition && RowCondition("pinned = ?", [isPinned]) }
        if let isStale {
            let stale = RowCondition("fresh_until <= ? OR invalid = 1", [now.milliseconds])
            condition = condition && (isStale ? stale : !stale)
        }
        return condition
    }

    /// The query of one page.
    func page(after cursor: CacheCursor? = nil, offset: Int = 0, limit: Int, at now: Timestamp) -> RowCondition {
        let (column, isRising) = order.column
        var condition = condition(at: now)
        if let cursor {
            let place: any DatabaseValueConvertible = if order == .url { cursor.place } else { Int64(cursor.place) ?? 0 }
            condition = condition && RowCondition("(\(column), id) \(isRising ? ">" : "<") (?, ?)", [place, cursor.id])
            // The bound by which the index is entered.
            if order == .url { condition = condition && RowCondition("url >= ?", [cursor.place]) }
        }
        let direction = isRising ? "" : " DESC"
        return RowCondition(
            """
            SELECT \(CacheListing.columns), CAST(\(column) AS TEXT) FROM entry
            WHERE \(condition.sql) ORDER BY \(column)\(direction), id\(direction) LIMIT ? OFFSET ?
            """, condition.arguments + [min(1000, max(1, limit)), max(0, offset)])
    }
}

/// A position in a list, which stays valid when entries are added or removed.
package struct CacheCursor: Hashable, Sendable {
    /// The value by which the list is ordered: the URL, or a number.
    let place: String
    let id: Int64

    init(place: String, id: Int64) { (self.place, self.id) = (place, id) }

    /// The cursor as an opaque token for clients: letters, digits, `-` and `_` only.
    package var text: String {
        Data("\(id) \(place)".utf8).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }

    /// Returns nil for a text that was not produced by `text`.
    package init?(text: String) {
        let standard = text.replacing("-", with: "+").replacing("_", with: "/")
        let padding = String(repeating: "=", count: (4 - standard.utf8.count % 4) % 4)
        guard let data = Data(base64Encoded: standard + padding), let plain = String(bytes: data, encoding: .utf8),
            let space = plain.firstIndex(of: " "), let id = Int64(plain[..<space])
        else { return nil }
        self.init(place: String(plain[plain.index(after: space)...]), id: id)
    }
}

// MARK: - Pages

extension CacheStore {
    /// Returns a page of entries. By URL the index of URLs, which contains the category, finds them; every other order reads all that the
    /// filter selects.
    /// - Parameters:
    ///   - cursor: the cursor of the last entry of the previous page; nil for the first page.
    ///   - offset: the number of selected entries to skip, for a jump to a page.
    ///   - limit: 1…1000.
    /// - Throws: `DatabaseError`, `UnreadableRow`.
    package func list(
        _ filter: CacheListFilter, after cursor: CacheCursor? = nil, offset: Int = 0, limit: Int = 100
    ) async throws -> [CacheListing] {
        if filter.order == .hits { try? await writeBackRecency() }
        let query = sealed(filter).page(after: cursor, offset: offset, limit: limit, at: clock())
        return try await database.pool.read { db in
            let rows = try Row.fetchAll(db, sql: query.sql, arguments: query.arguments)
            let counting = try db.cachedStatement(sql: "SELECT count(*) FROM entry WHERE url IN (?, ?)")
            var counts: [String: Int] = [:]
            return try rows.map { row in
                var listing = try CacheListing(row: row, self.index)
                if counts[listing.url] == nil {
                    counts[listing.url] = try Int.fetchOne(counting, arguments: [listing.shownURL, listing.url])
                }
                listing.variants = counts[listing.url] ?? 1
                // Some uses are not written back yet.
                listing.hits = listing.hits.addedClamped(self.recency.withLock { $0[listing.id]?.count } ?? 0)
                return listing
            }
        }
    }

    /// Returns a page of entries by URL.
    /// - Throws: `DatabaseError`, `UnreadableRow`.
    package func list(
        prefix: String = "", category: String? = nil, after cursor: CacheCursor? = nil, limit: Int = 100
    ) async throws -> [CacheListing] {
        var filter = CacheListFilter()
        (filter.prefix, filter.category) = (prefix, category)
        return try await list(filter, after: cursor, limit: limit)
    }

    /// The filter as the index knows URLs: their beginning may name a secret.
    private func sealed(_ filter: CacheListFilter) -> CacheListFilter {
        var filter = filter
        filter.prefix = index.sealed(filter.prefix)
        return filter
    }

    /// Returns the number of entries that a list shows on all its pages.
    /// - Throws: `DatabaseError`.
    package func count(_ filter: CacheListFilter) async throws -> Int {
        let condition = sealed(filter).condition(at: clock())
        return try await database.pool.read { db in
            try Int.fetchOne(db, sql: "SELECT count(*) FROM entry WHERE \(condition.sql)", arguments: condition.arguments) ?? 0
        }
    }

    /// Returns every entry of an absolute URL: each method, identity and variant, newest first; at most 1000.
    /// - Throws: `DatabaseError`, `UnreadableRow`.
    package func entries(ofURL url: String) async throws -> [CacheEntry] {
        try await database.pool.read { db in
            let statement = try db.cachedStatement(
                sql: "SELECT key, \(EntryRow.columns) FROM entry WHERE url IN (?, ?) ORDER BY response_time DESC, id DESC LIMIT 1000")
            return try Row.fetchAll(statement, arguments: [self.index.sealed(url), url]).map { try EntryRow.keyed(from: $0, self.index) }
        }
    }

    // MARK: - Bundles
    // Shared entries for bundles, one page at a time (docs/reference/admin-api.md#bundles, `cache export`).

    /// Returns entries of the shared partition in the order they were stored.
    /// - Parameters:
    ///   - prefix: the prefix of the URLs; "" for all.
    ///   - after: the `id` of the last entry of the previous page; 0 for the first page.
    /// - Throws: `DatabaseError`, `UnreadableRow`.
    package func sharedEntries(prefix: String, category: String?, after: Int64, limit: Int) async throws -> [CacheEntry] {
        let first = index.sealed(prefix)
        return try await database.pool.read { db in
            let statement = try db.cachedStatement(
                sql: """
                    SELECT key, \(EntryRow.columns) FROM entry
                    WHERE id > ? AND identity = '' AND url >= ? AND url < ? AND (?4 IS NULL OR category = ?4) ORDER BY id LIMIT ?
                    """)
            return try Row.fetchAll(statement, arguments: [after, first, first + "\u{10FFFF}", category, limit])
                .map { try EntryRow.keyed(from: $0, self.index) }
        }
    }

    /// Returns the entries of every partition whose URL begins with `prefix`, after entry `after`, in the order of their ids.
    ///
    /// - Throws: `DatabaseError`, `UnreadableRow`.
    package func entries(prefix: String, after: Int64, limit: Int) async throws -> [CacheEntry] {
        try await database.pool.read { db in
            let statement = try db.cachedStatement(
                sql: "SELECT key, \(EntryRow.columns) FROM entry WHERE id > ? AND url >= ? AND url < ? ORDER BY id LIMIT ?")
            return try Row.fetchAll(statement, arguments: [after, prefix, prefix + "\u{10FFFF}", limit]).map {
                try EntryRow.keyed(from: $0, self.index)
            }
        }
    }
}
