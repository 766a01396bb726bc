// A collection as its client sees it: the cached response with the client's own creates, changes and deletes (docs/outbox.md#reads).
package import HTTPTypes
import OrderedCollections

/// Read-your-writes for collections. Computed at every read, never written into the cache.
package enum CollectionFold {
    /// Folds the writes into the whole body of the cached response for `query` (raw, nil for none). `writes` are those of all items of the
    /// collection in order of acceptance: all that are open, and delivered ones until the cached copy was fetched after their delivery.
    package static func fold(_ base: JSONValue, query: String?, with writes: [FoldedWrite], resource: Resource) -> CollectionOutcome {
        let shape = RepresentationShape(resource)
        if shape.rowEquality != nil, shape.items.get(in: base)?.array == nil, base.object != nil {
            return row(base, with: writes, resource: resource, shape: shape)
        }
        guard let items = shape.items.get(in: base)?.array else {
            return CollectionOutcome(value: base, last: writes.map(\.sequence).max(), count: writes.count, isDirty: !writes.isEmpty)
        }
        var folding = CollectionFolding(base, elements: items, query: query, shape: shape)
        var writes = writes
        if let emptying = writes.lastIndex(where: \.emptiesCollection) {
            folding.removeAll(by: writes[emptying])
            writes.removeSubrange(...emptying)
        }
        var byItem: OrderedDictionary<String, [FoldedWrite]> = [:]
        for write in writes {
            if let id = write.id ?? write.answer.flatMap({ shape.idText(in: shape.unwrapped($0)) }) {
                byItem[id, default: []].append(write)
            } else {
                folding.fold([write], of: nil)
            }
        }
        for (id, writes) in byItem { folding.fold(writes, of: id) }
        return folding.outcome()
    }

    /// A row whose client asked for it alone, with the writes to it.
    private static func row(
        _ base: JSONValue, with writes: [FoldedWrite], resource: Resource, shape: RepresentationShape
    ) -> CollectionOutcome {
        let own = writes.filter { $0.id == nil || $0.id == shape.idText(in: base) }
        return switch ItemFold.fold(base, with: own, resource: resource) {
        case .unchanged: CollectionOutcome(value: base)
        case .present(let value, let last, let count): CollectionOutcome(value: value, last: last, count: count)
        case .deleted(let last, let count): CollectionOutcome(value: base, last: last, count: count, isDirty: true)
        case .dirty(let value, let last, let count): CollectionOutcome(value: value ?? base, last: last, count: count, isDirty: true)
        }
    }
}

/// The state of one collection while items are folded into it.
private struct CollectionFolding {
    private let query: CollectionQuery
    private let shape: RepresentationShape
    private let frame: CollectionFrame
    /// The elements of the base's list.
    private let elements: [JSONValue]
    /// The items of the base; nil where one was removed.
    private var items: [JSONValue?]
    private var places: [String: Int] = [:]
    private var added: [JSONValue] = []
    /// The places of items that an open create of this client has made.
    private var claimed: Set<Int> = []
    /// The number of items by which other pages of the list have grown.
    private var elsewhere = 0
    /// The ids in `items` and `added`.
    private var shown: Set<String> = []
    private var result: CollectionOutcome

    init(_ base: JSONValue, elements: [JSONValue], query: String?, shape: RepresentationShape) {
        let items = elements.map(shape.listed)
        self.elements = elements
        self.query = CollectionQuery(query, items: items, equality: shape.rowEquality)
        self.shape = shape
        frame = CollectionFrame(base, items: items, shape: shape)
        self.items = items
        result = CollectionOutcome(value: base)
        for (place, item) in items.enumerated() {
            if let id = shape.idText(in: item), places[id] == nil { places[id] = place }
        }
        shown = Set(places.keys)
    }

    /// Removes every item, as a write to the whole collection does.
    mutating func removeAll(by write: FoldedWrite) {
        items = items.map { _ in nil }
        (places, shown) = ([:], [])
        result.last = write.sequence
        result.count += 1
    }

    mutating func fold(_ writes: [FoldedWrite], of id: String?) {
        var place = id.flatMap { places[$0] }
        // An item of another list, for all that is known.
        if place == nil, shape.isShallow, writes.allSatisfy(\.addressesItem) { return }
        var item = ItemProjection(place.flatMap { items[$0] }.map { .present($0) } ?? .unknown, shape: shape)
        for write in writes { item.apply(write) }
        if place == nil, let create = writes.first, !create.isItem, create.mayBeShown, !create.hasChosenKey {
            let new = newPlaces(since: create)
            place = new?.first { created(by: create, is: items[$0]) }
            if let place { claimed.insert(place) }
            result.isDirty = result.isDirty || place == nil && new?.isEmpty != true
        }
        guard item.count > 0 else { return }
        if let place { update(place, to: item) } else { admit(item, with: writes) }
    }

    /// The places of items that were not there when a create was sent; nil if that is not known.
    private func newPlaces(since create: FoldedWrite) -> [Int]? {
        create.idsBefore.map { before in
            items.indices.filter { place in
                guard !claimed.contains(place), let id = items[place].flatMap({ shape.idText(in: $0) }) else { return false }
                return !before.contains(id)
            }
        }
    }

    /// True if an item has every member that a create has given it.
    private func created(by create: FoldedWrite, is item: JSONValue?) -> Bool {
        guard let item, case .create(let object) = WriteEffect(create, shape: shape), let members = object.object else { return false }
        return members.allSatisfy { shape.id == JSONPointer(tokens: [$0.name]) || item[$0.name] == $0.value }
    }

    private mutating func update(_ place: Int, to item: ItemProjection) {
        guard case .present(let object) = item.state else {
            items[place] = nil
            return result.note(item, isDirty: item.isDirty)
        }
        let fit = query.fit(object)
        let versioned = item.isLocal ? LocalVersions(shape).marked(object, after: item.last) : object
        items[place] = fit == .no ? nil : shape.marked(versioned, as: item.waiting)
        result.note(item, isDirty: item.isDirty || fit == .unknown)
    }

    /// Adds an item that the base does not contain, because it is new, on another page, or did not match the query.
    private mutating func admit(_ item: ItemProjection, with writes: [FoldedWrite]) {
        let mayBeNew = item.isNew || writes.contains { !$0.addressesItem || $0.method == .put }
        switch item.state {
        case .absent:
            // It was on another page, and the totals count it no more.
            let isElsewhere = frame.isPartial && frame.hasTotals && !query.selects && writes.allSatisfy(\.isItem)
            if isElsewhere { elsewhere -= 1 }
            if item.isDirty || isElsewhere { result.note(item, isDirty: item.isDirty) }
        case .unknown: if mayBeNew || query.selects { result.note(item, isDirty: true) }
        case .present(let object):
            guard mayBeNew || query.selects else { return }
            guard let id = shape.idText(in: object) else { return result.note(item, isDirty: true) }
            guard !shown.contains(id) else { return }
            let isKnownPlace = query.isFirstPage && (item.isNew || !frame.isPartial)
            switch query.fit(object) {
            case .no: if item.isDirty { result.note(item, isDirty: true) }
            case .yes where isKnownPlace:
                added.append(shape.marked(object, as: item.waiting))
                shown.insert(id)
                result.note(item, isDirty: item.isDirty || query.isShaped)
            case .yes, .unknown:
                if item.isNew, !query.isFirstPage, case .yes = query.fit(object) { elsewhere += 1 }
                result.note(item, isDirty: true)
            }
        }
    }

    func outcome() -> CollectionOutcome {
        var result = result
        let kept = zip(items, elements).compactMap { item, element in item.map { shape.asElement($0, in: element) } }
        let added = added.map { shape.asElement($0, in: nil) }
        result.growth = kept.count + added.count - items.count + elsewhere
        result.value = frame.filled(growth: result.growth, with: frame.isNewestFirst ? added.reversed() + kept : kept + added)
        return result
    }
}

// MARK: - Outcome

/// A collection with pending writes folded in.
package struct CollectionOutcome: Hashable, Sendable {
    /// The whole body.
    package var value: JSONValue
    /// The sequence of the last write that affects the collection, for the ETag; nil when there is none and `value` is the base.
    package var last: Int64?
    /// The number of writes that affect the collection, delivered ones included.
    package var count: Int
    /// True if one of them has an effect that could not be computed; sent as `Rockpool-Dirty: 1`.
    package var isDirty: Bool
    /// The number of items more than in the base; negative for fewer.
    package var growth = 0

    package init(value: JSONValue, last: Int64? = nil, count: Int = 0, isDirty: Bool = false) {
        self.value = value
        self.last = last
        self.count = count
        self.isDirty = isDirty
    }

    mutating func note(_ item: ItemProjection, isDirty: Bool) {
        last = max(last ?? item.last, item.last)
        count += item.count
        self.isDirty = self.isDirty || isDirty
    }
}

// MARK: - Frame

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

    fileprivate static let totals = [
        "total", "totalCount", "total_count", "count", "totalElements", "totalItems", "total_items", "totalResults", "total_results",
        "@odata.count", "totalRecords", "total_records", "totalRows", "total_rows", "totalHits", "totalEntries", "total_entries",
        "numFound",
        "recordsTotal", "resultCount", "result_count", "itemCount", "item_count", "filtered_table_rows_count",
    ]
    fileprivate static let furtherPages = [
        "next", "nextCursor", "next_cursor", "nextPage", "next_page", "hasMore", "has_more", "@odata.nextLink",
    ]
    /// Objects beside the items, or at the top, that are about the list: of JSON:API, of HAL, of Spring.
    fileprivate static let about = [["meta"], ["page"], ["pagination"], ["meta", "page"], ["meta", "pagination"], ["links"], ["_links"]]

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

extension Resource {
    /// Returns the body of a list without entries.
    /// - Parameters:
    ///   - path: that of the list.
    ///   - other: another list of the resource, of which it has the form, and its path; nil if none is known.
    package func emptyList(at path: String, like other: (body: JSONValue, path: String)? = nil) -> JSONValue {
        guard let place = JSONPointer(items), !place.tokens.isEmpty else { return .array([]) }
        let segments = { (path: String) in Set(path.split(separator: "/").map { String($0) }) }
        let others = other.map { segments($0.path).subtracting(segments(path)) } ?? []
        let frame = other.flatMap { place.get(in: $0.body)?.array == nil ? nil : $0.body.object } ?? JSONObject()
        return .object(EmptyList(others: others).emptied(frame, to: place.tokens[...]))
    }
}

/// A list of which everything about its entries is removed: what counts them is 0, links are null, and what names another parent is left out.
private struct EmptyList {
    /// The segments of the other list's path that this one does not have, such as the id of its parent.
    let others: Set<String>

    /// - Parameter place: the tokens from this object to the entries; empty for an object that is only about the list.
    func emptied(_ object: JSONObject, to place: ArraySlice<String>) -> JSONObject {
        var result = JSONObject()
        for (name, value) in object where name != place.first {
            result[name] = emptied(value, named: name)
        }
        if let name = place.first {
            let inner = place.dropFirst()
            result[name] = inner.isEmpty ? .array([]) : .object(emptied(object[name]?.object ?? JSONObject(), to: inner))
        }
        return result
    }

    /// Returns nil for a member that may hold what only the other list has.
    private func emptied(_ value: JSONValue, named name: String) -> JSONValue? {
        switch value {
        case .object(let members):
            guard CollectionFrame.about.contains([name]) else { return nil }
            let inner = emptied(members, to: [])
            return .object(name.hasSuffix("links") ? JSONObject(members.names.map { ($0, .null) }) : inner)
        case .array: return nil
        case .number where CollectionFrame.totals.contains(name): return 0
        case .bool where CollectionFrame.furtherPages.contains(name): return false
        case _ where CollectionFrame.furtherPages.contains(name): return .null
        case .string(let text) where ["/", "http://", "https://"].contains(where: text.hasPrefix): return .null
        case .string, .number: return value.identifier.map(others.contains) == true ? nil : value
        case .bool, .null: return value
        }
    }
}

// Fields of a list that count its items (docs/outbox.md#reads).
extension HTTPFields {
    private static let totals = ["X-Total-Count", "X-Total", "Total-Count", "X-Pagination-Total-Count"].compactMap { HTTPField.Name($0) }

    /// Adjusts the fields that count the items of a list by those that were added or removed.
    package mutating func countItems(_ growth: Int) {
        guard growth != 0 else { return }
        for name in Self.totals {
            guard let text = self[name], let value = Int(text), case let (sum, overflow) = value.addingReportingOverflow(growth), !overflow,
                sum >= 0
            else { continue }
            self[name] = String(sum)
        }
    }
}

// MARK: - Query

/// A query's parameters, sorted by their effect on the list (docs/outbox.md#reads; docs/reference/configuration.md#resources).
struct CollectionQuery {
    /// The match of an item with the query.
    enum Fit { case yes, no, unknown }

    struct Parameter: Hashable {
        let name: String
        let value: String

        /// True if it selects items, and sets neither the page nor the order nor the members.
        var selects: Bool {
            if name.hasPrefix("$") || name.hasPrefix("_"), CollectionQuery.signed.contains(name.plain) { return false }
            return !CollectionQuery.pages.contains(name.plain) && !CollectionQuery.shapes.contains(name.plain)
        }
    }

    /// Equality filters: each selects items whose member of that name equals the value or contains it.
    private let filters: [Parameter]
    /// True if something else selects items: a search, a time stamp, a name that no item has, a value with operators.
    private let isOpaque: Bool
    /// True if the query sets a page, an order or a selection of members.
    let isShaped: Bool
    /// True if the query requests the beginning of the list.
    let isFirstPage: Bool

    /// Parses a raw query, nil for none. A parameter is an equality filter only if every one of `items` that has such a member passes it:
    /// one counterexample shows that the parameter means something else to the upstream.
    /// - Parameter equality: What stands before the value of a filter that selects what is equal to it; nil if it is the value alone.
    init(_ query: String?, items: [JSONValue], equality: String? = nil) {
        let parameters = Self.parameters(in: query ?? "")
        let selecting = parameters.filter(\.selects)
        let filters = selecting.compactMap { parameter -> Parameter? in
            guard !Self.searches.contains(parameter.name.plain), !parameter.value.contains(","),
                selecting.count(where: { $0.name == parameter.name }) == 1, parameter.value.hasPrefix(equality ?? "")
            else { return nil }
            let filter = Parameter(name: parameter.name, value: String(parameter.value.dropFirst(equality?.count ?? 0)))
            return items.allSatisfy { Self.fit($0, to: filter) != .no } ? filter : nil
        }
        self.filters = filters
        isOpaque = filters.count < selecting.count
        isShaped = selecting.count < parameters.count
        isFirstPage = parameters.allSatisfy(Self.beginsList)
    }

    /// True if anything selects items; otherwise changing an item neither adds nor removes it.
    var selects: Bool { isOpaque || !filters.isEmpty }

    /// Returns the match of an item with the filters, regardless of the page.
    func fit(_ item: JSONValue) -> Fit {
        let fits = filters.map { Self.fit(item, to: $0) }
        if fits.contains(.no) { return .no }
        return isOpaque || fits.contains(.unknown) ? .unknown : .yes
    }

    /// A member that the item lacks is `unknown`: the upstream may give it a default.
    private static func fit(_ item: JSONValue, to parameter: Parameter) -> Fit {
        switch item[parameter.name] {
        case .array(let elements): elements.contains { isEqual($0, to: parameter.value) ?? false } ? .yes : .no
        case let value?: isEqual(value, to: parameter.value).map { $0 ? .yes : .no } ?? .unknown
        case nil: .unknown
        }
    }

    /// Compares a value with a parameter's text; nil for types that a query cannot express.
    private static func isEqual(_ value: JSONValue, to text: String) -> Bool? {
        switch value {
        case .string(let string): string.utf8.elementsEqual(text.utf8)
        case .number(let number): JSONNumber(literal: text) == number
        case .bool(let bool): ["true": bool, "1": bool, "false": !bool, "0": !bool][text]
        case .null, .array, .object: nil
        }
    }

    static func parameters(in query: String) -> [Parameter] {
        query.utf8.split(separator: UInt8(ascii: "&")).map { text in
            let name = text.prefix { $0 != FieldByte.equals }
            return Parameter(name: FormEncoding.text(of: name), value: FormEncoding.text(of: text.dropFirst(name.count + 1)))
        }
    }

    private static func beginsList(_ parameter: Parameter) -> Bool {
        switch parameter.name.plain {
        case "page", "page[number]": ["", "0", "1"].contains(parameter.value)
        case "offset", "skip", "page[offset]": ["", "0"].contains(parameter.value)
        case "cursor", "pagetoken", "after", "before", "startingafter", "endingbefore", "page[cursor]", "page[after]", "page[before]",
            "skiptoken", "getpages":
            parameter.value.isEmpty
        default: true
        }
    }

    private static let pages: Set<String> = [
        "page", "limit", "offset", "skip", "cursor", "pagetoken", "after", "before", "startingafter", "endingbefore", "perpage", "pagesize",
        "page[number]", "page[size]", "page[offset]", "page[limit]", "page[cursor]", "page[after]", "page[before]",
    ]
    private static let shapes: Set<String> = [
        "sort", "sortby", "order", "orderby", "direction", "fields", "include", "expand", "select", "columns",
    ]
    /// Names that have this meaning only with a sign: `$count` of OData, `_summary` of FHIR.
    private static let signed: Set<String> = ["count", "total", "format", "summary", "elements", "pretty", "top", "skiptoken", "getpages"]
    private static let searches: Set<String> = ["q", "query", "search", "filter", "where", "since", "updatedafter", "updatedsince"]
}

extension String {
    /// The name in lower case without separators, so that `perPage`, `per_page` and `per-page` are equal; without the sign of OData, and
    /// `fields` for `fields[notes]`.
    fileprivate var plain: String {
        let name = lowercased().filter { $0 != "_" && $0 != "-" && $0 != "$" }
        return name.hasPrefix("fields[") ? "fields" : name
    }
}
