// Which items a collection's query asks for, as far as a proxy can tell (outbox.md §1.5; contract §2 `resources`).

/// A query's parameters, sorted by what they do to the list.
struct CollectionQuery {
    /// Whether an item belongs in the list.
    enum Fit { case yes, no, unknown }

    private struct Parameter: Hashable {
        let name: String
        let value: String
    }

    /// Each asks for items whose member of that name has, or holds, that value.
    private let filters: [Parameter]
    /// Whether something else selects items: a search, a moment, a name no item has, a value with operators.
    private let isOpaque: Bool
    /// Whether a page, an order or a choice of members shapes the list.
    let isShaped: Bool
    /// Whether it asks for the beginning of the list.
    let isFirstPage: Bool

    /// Reads a raw query, nil for none. A parameter is an equality filter only if every one of `items` that has such a member passes it:
    /// one answer to the contrary shows that the upstream means something else by it.
    init(_ query: String?, items: [JSONValue]) {
        let parameters = Self.parameters(query ?? "")
        let selecting = parameters.filter { !Self.pages.contains($0.name.plain) && !Self.shapes.contains($0.name.plain) }
        let filters = selecting.filter { parameter in
            !Self.searches.contains(parameter.name.plain) && !parameter.value.contains(",")
                && selecting.count { $0.name == parameter.name } == 1
                && items.allSatisfy { Self.fit($0, parameter) != .no }
        }
        self.filters = filters
        isOpaque = filters.count < selecting.count
        isShaped = selecting.count < parameters.count
        isFirstPage = parameters.allSatisfy(Self.beginsList)
    }

    /// Whether anything selects items: without that, changing an item takes it neither in nor out.
    var selects: Bool { isOpaque || !filters.isEmpty }

    /// Whether an item of this content belongs in the list, on whichever page.
    func fit(_ item: JSONValue) -> Fit {
        let fits = filters.map { Self.fit(item, $0) }
        if fits.contains(.no) { return .no }
        return isOpaque || fits.contains(.unknown) ? .unknown : .yes
    }

    /// A member the item lacks says nothing: the upstream may give it a default.
    private static func fit(_ item: JSONValue, _ parameter: Parameter) -> Fit {
        switch item[parameter.name] {
        case .array(let elements): elements.contains { isEqual($0, parameter.value) ?? false } ? .yes : .no
        case let value?: isEqual(value, parameter.value).map { $0 ? .yes : .no } ?? .unknown
        case nil: .unknown
        }
    }

    /// Nil for what no query writes.
    private static func isEqual(_ value: JSONValue, _ text: String) -> Bool? {
        switch value {
        case .string(let string): string.utf8.elementsEqual(text.utf8)
        case .number(let number): JSONNumber(literal: text) == number
        case .bool(let bool): ["true": bool, "1": bool, "false": !bool, "0": !bool][text]
        case .null, .array, .object: nil
        }
    }

    private static func parameters(_ query: String) -> [Parameter] {
        query.utf8.split(separator: UInt8(ascii: "&")).map { text in
            let name = text.prefix { $0 != FieldByte.equals }
            return Parameter(name: FormEncoding.text(name), value: FormEncoding.text(text.dropFirst(name.count + 1)))
        }
    }

    private static func beginsList(_ parameter: Parameter) -> Bool {
        switch parameter.name.plain {
        case "page": ["", "0", "1"].contains(parameter.value)
        case "offset", "skip": ["", "0"].contains(parameter.value)
        case "cursor", "pagetoken", "after", "before", "startingafter", "endingbefore": parameter.value.isEmpty
        default: true
        }
    }

    private static let pages: Set<String> = [
        "page", "limit", "offset", "skip", "cursor", "pagetoken", "after", "before", "startingafter", "endingbefore", "perpage", "pagesize",
    ]
    private static let shapes: Set<String> = ["sort", "sortby", "order", "orderby", "direction", "fields", "include", "expand", "select"]
    private static let searches: Set<String> = ["q", "query", "search", "filter", "where", "since", "updatedafter", "updatedsince"]
}

extension String {
    /// `perPage`, `per_page` and `per-page` are one word.
    fileprivate var plain: String { lowercased().filter { $0 != "_" && $0 != "-" } }
}
