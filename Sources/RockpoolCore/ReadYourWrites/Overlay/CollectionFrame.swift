// The part of a collection's body around its items: their order and their count (docs/outbox.md#reads).
import OrderedCollections

/// A collection's body apart from its items.
struct CollectionFrame {
    private let body: JSONValue
    private let shape: RepresentationShape
    private let itemCount: Int
    /// Item totals, under the names APIs use, that are at least the number of items in the body.
    private let totals: [(place: JSONPointer, value: Int64)]
    /// True if `updated_at` decreases from the first item to the last.
    let isNewestFirst: Bool
    /// True if the body shows that further items exist on other pages.
    let isPartial: Bool

    init(_ body: JSONValue, items: [JSONValue], shape: RepresentationShape) {
        self.body = body
        self.shape = shape
        itemCount = items.count
        let count = Int64(items.count)
        let parent = JSONPointer(tokens: shape.items.tokens.dropLast())
        // Beside the items, at the top, or in an object there that is about the list.
        let above = shape.items.tokens.isEmpty ? [] : OrderedSet([parent, JSONPointer(tokens: [])])
        let about = above.flatMap { place in
            [place] + Self.about.map { JSONPointer(tokens: place.tokens + $0) }.filter { $0.get(in: body)?.object != nil }
        }
        totals = about.flatMap { place in
            Self.totals.compactMap { name in
                guard let value = place.get(in: body)?[name]?.integer, value >= count else { return nil }
                return (JSONPointer(tokens: place.tokens + [name]), value)
            }
        }
        let saysMore = about.contains { place in
            Self.furtherPages.contains { name in
                switch place.get(in: body)?[name] {
                case nil, .null, .bool(false), .string(""): false
                default: true
                }
            }
        }
        isPartial = saysMore || totals.contains { $0.value > count }
        isNewestFirst = Self.falls(items, by: shape.updatedAt)
    }

    /// True if the body counts the items of the list.
    var hasTotals: Bool { !totals.isEmpty }

    /// Returns the body with `items` instead of its own. Totals of the page follow its items, those of the whole list its growth.
    func filled(growth: Int, with items: [JSONValue]) -> JSONValue {
        var body = body
        shape.items.set(.array(items), in: &body)
        let onPage = items.count - itemCount
        guard onPage != 0 || growth != 0 else { return body }
        for total in totals {
            let difference = isPartial && total.value == Int64(itemCount) ? onPage : growth
            let (value, overflow) = total.value.addingReportingOverflow(Int64(difference))
            if !overflow, value >= 0 { total.place.set(.number(JSONNumber(value)), in: &body) }
        }
        return body
    }

    private static let totals = [
        "total", "totalCount", "total_count", "count", "totalElements", "totalItems", "total_items", "totalResults", "total_results",
        "@odata.count", "totalRecords", "total_records", "totalRows", "total_rows", "totalHits", "totalEntries", "total_entries",
        "numFound",
        "recordsTotal", "resultCount", "result_count", "itemCount", "item_count", "filtered_table_rows_count",
    ]
    private static let furtherPages = [
        "next", "nextCursor", "next_cursor", "nextPage", "next_page", "hasMore", "has_more", "@odata.nextLink",
    ]
    /// Objects beside the items, or at the top, that are about the list: of JSON:API, of HAL, of Spring.
    private static let about = [["meta"], ["page"], ["pagination"], ["meta", "page"], ["meta", "pagination"], ["links"], ["_links"]]

    private static func falls(_ items: [JSONValue], by pointer: JSONPointer?) -> Bool {
        guard let pointer else { return false }
        let moments = items.map { pointer.get(in: $0).flatMap(moment) }
        guard let first = moments.first ?? nil, let last = moments.last ?? nil, first > last else { return false }
        return zip(moments, moments.dropFirst()).allSatisfy { earlier, later in
            guard let earlier, let later else { return false }
            return earlier >= later
        }
    }

    /// Parses RFC 3339 or an integer (docs/reference/configuration.md#resources); one list uses a single format, so only the order matters.
    private static func moment(in value: JSONValue) -> Int64? {
        value.integer ?? value.string.flatMap { RFC3339.parse($0) }?.milliseconds
    }
}
