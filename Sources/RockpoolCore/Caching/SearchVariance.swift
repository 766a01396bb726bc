// Which parameters of its query a response depends on, and the text two queries share when they mean the same to it
// (No-Vary-Search, draft-ietf-httpbis-no-vary-search).
package import HTTPTypes
import RawStructuredFieldValues

/// What `No-Vary-Search` says, of a response or, by the operator, of a route. Names are compared by what they decode to.
package struct SearchVariance: Hashable, Sendable {
    /// Names in the form `FormEncoding` gives them, which is ASCII: one text for one name.
    private enum Parameters: Hashable, Sendable {
        case allBut(Set<String>)
        case only(Set<String>)
    }

    private var significant = Parameters.allBut([])
    private var ignoresKeyOrder = false

    /// Every byte of the query matters.
    package static let `default` = SearchVariance()
    package var isDefault: Bool { self == .default }

    /// Bytes of a field; a longer one counts as malformed.
    package static let maxFieldBytes = 4096
    /// Bytes of a query that is normalised; a longer one stands for itself, as do the default's.
    package static let maxQueryBytes = 8192
    /// Parameters, empty ones included, of a query that is normalised. Within the limits a query costs two milliseconds at worst
    /// (all of it percent-encoded bytes that are no UTF-8), and a usual one two microseconds.
    package static let maxParameters = 512

    private init() {}

    /// What the response with `fields` says; what cannot be understood says nothing.
    package init(_ fields: HTTPFields) {
        self = fields.value(of: "no-vary-search").flatMap(SearchVariance.init(fieldValue:)) ?? .default
    }

    /// Reads a field's value, stored or configured; nil where a response's would mean the default because it is malformed.
    ///
    /// The drafts differ in how they say "no parameter matters": `params` (those that browsers built) or `except=()` (the latest).
    /// Both are read: no value means one thing by the one and another thing by the other.
    package init?(fieldValue: String) {
        guard fieldValue.utf8.count <= Self.maxFieldBytes else { return nil }
        var parser = StructuredFieldValueParser(Array(fieldValue.utf8))
        guard let members = try? parser.parseDictionaryFieldValue() else { return nil }
        if let order = members["key-order"] {
            guard let isIgnored = Self.boolean(order) else { return nil }
            ignoresKeyOrder = isIgnored
        }
        switch (members["params"], members["except"]) {
        case (nil, nil): break
        case (let params?, nil):
            if let isAll = Self.boolean(params) {
                if isAll { significant = .only([]) }
            } else {
                guard let names = Self.names(params) else { return nil }
                significant = .allBut(names)
            }
        case (let params, let except?):
            guard params.map({ Self.boolean($0) == true }) ?? true, let names = Self.names(except) else { return nil }
            significant = .only(names)
        }
    }

    /// The value to store or show, read back by `init(fieldValue:)`; empty for the default.
    package var fieldValue: String {
        var members: [String] = ignoresKeyOrder ? ["key-order"] : []
        switch significant {
        case .allBut(let names): if !names.isEmpty { members.append("params=\(Self.innerList(names))") }
        case .only(let names): members.append("except=\(Self.innerList(names))")
        }
        return members.joined(separator: ", ")
    }
}

extension SearchVariance {
    /// The text that equivalent queries share and no others: decoded and encoded anew, without what does not matter, and stably
    /// sorted by name where the order of names does not. The default's, and a query past the limits, is the query as it came.
    package func normalized(query: String) -> String {
        guard !isDefault, query.utf8.count <= Self.maxQueryBytes else { return query }
        let sequences = query.utf8.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false)
        guard sequences.count <= Self.maxParameters else { return query }
        var parameters: [(name: String, value: String)] = []
        for sequence in sequences where !sequence.isEmpty {
            let encodedName = sequence.prefix { $0 != FieldByte.equals }
            let name = FormEncoding.canonical(encodedName)
            guard isSignificant(name) else { continue }
            parameters.append((name, FormEncoding.canonical(sequence.dropFirst(encodedName.count + 1))))
        }
        if ignoresKeyOrder { parameters.sort { $0.name < $1.name } }
        return parameters.map { "\($0.name)=\($0.value)" }.joined(separator: "&")
    }

    /// `target` (path and query) with its query normalised: two targets are equivalent when these are equal. Unless it is the
    /// default that holds, an empty query is none.
    package func normalized(target: String) -> String {
        guard !isDefault, let mark = target.utf8.firstIndex(of: UInt8(ascii: "?")) else { return target }
        let query = normalized(query: String(target[target.utf8.index(after: mark)...]))
        return query.isEmpty ? String(target[..<mark]) : "\(target[..<mark])?\(query)"
    }

    private func isSignificant(_ name: String) -> Bool {
        switch significant {
        case .allBut(let names): !names.contains(name)
        case .only(let names): names.contains(name)
        }
    }

    private static func boolean(_ member: ItemOrInnerList) -> Bool? {
        guard case .item(let item) = member, case .bool(let value) = item.rfc9651BareItem else { return nil }
        return value
    }

    /// The names of an inner list, nil when it is none or holds something else than strings.
    private static func names(_ member: ItemOrInnerList) -> Set<String>? {
        guard case .innerList(let list) = member else { return nil }
        var names: Set<String> = []
        for item in list.bareInnerList {
            guard case .string(let name) = item.rfc9651BareItem else { return nil }
            names.insert(FormEncoding.canonical(name.utf8))
        }
        return names
    }

    private static func innerList(_ names: Set<String>) -> String {
        "(\(names.sorted().map(StructuredText.string).joined(separator: " ")))"
    }
}
