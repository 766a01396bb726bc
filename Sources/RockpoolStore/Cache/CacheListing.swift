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
    init(row: Row) throws {
        var columns = RowReader(row)
        self.init(
            id: try columns.next(), url: try columns.next(), method: CacheKey(text: try columns.next())?.method ?? "",
            category: try columns.next(), status: try columns.next(), bytes: try columns.next(),
            storedAt: Timestamp(milliseconds: try columns.next()), freshUntil: Timestamp(milliseconds: try columns.next()),
            lastUsedAt: Timestamp(milliseconds: try columns.next()), isPinned: try columns.next(), identity: try columns.next(),
            variants: 1, hits: max(0, CacheSchema.requests(try columns.next()) - 1), place: try columns.next())
    }
}
