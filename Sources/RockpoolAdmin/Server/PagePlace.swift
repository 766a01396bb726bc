// The place of a page in a list: a cursor, or a number of items to skip (docs/reference/admin-api.md#lists).
import RockpoolCore

/// `limit`, `offset` and `count` of a list.
struct PagePlace {
    static let names: Set<String> = ["limit", "cursor", "offset", "count"]
    /// The most items of one page.
    private static let most: Int64 = 1000
    /// The largest offset: a list is read up to it.
    private static let furthest: Int64 = 10_000_000

    let limit: Int
    /// The number of items before the page.
    let offset: Int
    /// True if the answer names the number of items of all pages.
    let isCounted: Bool

    /// Throws a 400 for a number out of bounds, and for an offset with a cursor.
    init(_ query: AdminQuery) throws(Refusal) {
        limit = Int(try query.number(named: "limit", in: 1...Self.most, default: 100))
        offset = Int(try query.number(named: "offset", in: 0...Self.furthest, default: 0))
        isCounted = try query.flag(named: "count")
        if offset > 0, try query.one(named: "cursor") != nil { throw .badRequest("offset and cursor exclude each other") }
    }
}
