// What surrounds the items of a collection: their order and their number (outbox.md §1.5).

/// A collection's body seen apart from its items.
struct CollectionFrame {
    private let body: JSONValue
    private let shape: RepresentationShape
    private let itemCount: Int
    /// Numbers of items, by the names APIs give them, that are no less than what the body shows.
    private let totals: [(place: JSONPointer, value: Int64)]
    /// Whether `updated_at` visibly falls from the first item to the last.
    let isNewestFirst: Bool
    /// Whether the body says that there is more than it shows.
    let isPartial: Bool

    init(_ body: JSONValue, items: [JSONValue], shape: RepresentationShape) {
        self.body = body
        self.shape = shape
        itemCount = items.count
        let count = Int64(items.count)
        let parent = JSONPointer(tokens: shape.items.tokens.dropLast())
        let siblings = shape.items.tokens.isEmpty ? nil : parent.get(in: body)
        totals = ["total", "totalCount", "total_count", "count"].compactMap { name in
            guard let value = siblings?[name]?.integer, value >= count else { return nil }
            return (JSONPointer(tokens: parent.tokens + [name]), value)
        }
        let saysMore = ["next", "nextCursor", "next_cursor", "nextPage", "next_page", "hasMore", "has_more"].contains { name in
            switch siblings?[name] {
            case nil, .null, .bool(false), .string(""): false
            default: true
            }
        }
        isPartial = saysMore || totals.contains { $0.value > count }
        isNewestFirst = Self.falls(items, by: shape.updatedAt)
    }

    /// The body with these items in the place of its own, and the totals moved by the difference.
    func filled(with items: [JSONValue]) -> JSONValue {
        var body = body
        shape.items.set(.array(items), in: &body)
        let difference = Int64(items.count - itemCount)
        guard difference != 0 else { return body }
        for total in totals {
            let (value, overflow) = total.value.addingReportingOverflow(difference)
            if !overflow { total.place.set(.number(JSONNumber(value)), in: &body) }
        }
        return body
    }

    private static func falls(_ items: [JSONValue], by pointer: JSONPointer?) -> Bool {
        guard let pointer else { return false }
        let moments = items.map { pointer.get(in: $0).flatMap(moment) }
        guard let first = moments.first ?? nil, let last = moments.last ?? nil, first > last else { return false }
        return zip(moments, moments.dropFirst()).allSatisfy { earlier, later in
            guard let earlier, let later else { return false }
            return earlier >= later
        }
    }

    /// RFC 3339 or an integer (contract §6); in one list they are of one kind, so that only their order matters.
    private static func moment(_ value: JSONValue) -> Int64? {
        value.integer ?? value.string.flatMap { RFC3339.parse($0) }?.milliseconds
    }
}
