// The entries that a list shows, and their order (docs/reference/admin-api.md#cache).
import GRDB
package import RockpoolCore

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
