// A strict parser for the query of an admin call: a misspelt parameter or an unencoded URL fails instead of changing the meaning.
import Hummingbird
import RockpoolCore
import RockpoolStore

/// Names and values in their order, percent-decoded; `+` is not decoded to a space.
struct AdminQuery {
    private let parameters: [(name: String, value: String)]

    /// Throws a 400 for a parameter that is not in `known` and for a bad percent-encoding.
    init(_ request: Request, known: Set<String>) throws(Refusal) {
        var parameters: [(name: String, value: String)] = []
        for part in (request.uri.query ?? "").split(separator: "&") {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = Self.decoded(pair[0]), let value = Self.decoded(pair.count > 1 ? pair[1] : "") else {
                throw .badRequest("the query's percent-encoding is broken at \(part.prefix(40))")
            }
            guard known.contains(name) else {
                let encoding = known.contains("url") ? "; a URL in the query must be percent-encoded" : ""
                throw .badRequest("no parameter \(name.prefix(40)); there are \(known.sorted().joined(separator: ", "))\(encoding)")
            }
            parameters.append((name, value))
        }
        self.parameters = parameters
    }

    private static func decoded(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = text.utf8
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            let digits = Substring(rest.prefix(2))
            guard digits.utf8.count == 2, digits.first?.isHexDigit == true, let value = UInt8(digits, radix: 16) else { return nil }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }

    /// Every value of a parameter.
    func all(named name: String) -> [String] { parameters.filter { $0.name == name }.map(\.value) }

    /// The value of an optional parameter. Throws a 400 if it occurs more than once.
    func one(named name: String) throws(Refusal) -> String? {
        let values = all(named: name)
        guard values.count <= 1 else { throw .badRequest("\(name) is there more than once") }
        return values.first
    }

    /// The value of an optional parameter that selects by name. Throws a 400 if it is empty or repeated.
    func filled(named name: String) throws(Refusal) -> String? {
        let value = try one(named: name)
        guard value != "" else { throw .badRequest("\(name) is empty") }
        return value
    }

    /// The value of a required parameter. Throws a 400 if it is missing, empty or repeated.
    func required(named name: String) throws(Refusal) -> String {
        guard let value = try one(named: name), !value.isEmpty else { throw .badRequest("\(name) is missing") }
        return value
    }

    /// A whole number within bounds. Throws a 400 otherwise.
    func number(named name: String, in bounds: ClosedRange<Int64>, default value: Int64) throws(Refusal) -> Int64 {
        guard let text = try one(named: name) else { return value }
        guard let number = Int64(text), bounds.contains(number) else {
            throw .badRequest("\(name) is a number from \(bounds.lowerBound) to \(bounds.upperBound)")
        }
        return number
    }

    /// `true` or `false`; false if absent. Throws a 400 otherwise: a misspelt dry run must not become a real one.
    func flag(named name: String) throws(Refusal) -> Bool {
        switch try one(named: name) {
        case nil, "false": false
        case "true", "1", "": true
        default: throw .badRequest("\(name) is true or false")
        }
    }
}

/// `limit`, `offset` and `count` of a list (docs/reference/admin-api.md#lists).
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

/// The id in a path of the admin API (docs/reference/admin-api.md#ids).
enum NamedID {
    /// The least characters of a part: shorter ones are typing errors more often than names.
    private static let shortest = 4
    /// The most ids that the answer to an ambiguous part lists.
    private static let listed = 5

    /// Returns the id that `name` stands for: a whole id, or the beginning or end of exactly one.
    /// - Returns: `name` itself if nothing matches it; nil for nil.
    /// - Throws: 409 with the ids if several match; `DataStoreError`.
    static func whole(_ name: String?, of kind: DataStore.IdentifiedKind, in data: DataStore) async throws -> String? {
        guard let name, name.utf8.count >= shortest, name.utf8.count < 36 else { return name }
        let found = try await data.ids(kind, matching: name.lowercased(), limit: listed + 1)
        guard found.count > 1 else { return found.first ?? name }
        let shown = found.prefix(listed).joined(separator: ", ") + (found.count > listed ? ", …" : "")
        throw Refusal.conflict("\(name) is a part of several ids; the beginning of an id is its time, so name its end: \(shown)")
    }
}
