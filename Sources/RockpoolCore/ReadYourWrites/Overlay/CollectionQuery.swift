// A collection's query, as far as the proxy can interpret its filters (docs/outbox.md#reads; docs/reference/configuration.md#resources
// `resources`).

/// A query's parameters, sorted by their effect on the list.
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
