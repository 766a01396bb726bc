// Several conditions that an entry must all meet (docs/reference/admin-api.md#purge).
import GRDB
package import RockpoolCore

/// The entries that meet every condition that is set.
package struct CacheSelection: Hashable, Sendable {
    /// One of these URLs; empty means any.
    package var urls: [String] = []
    /// The beginning of the URL.
    package var prefix: String?
    /// A pattern of the whole URL, in which `*` stands for any characters.
    package var glob: String?
    /// One of these groups; empty means any.
    package var groups: [String] = []
    package var category: String?
    package var origin: OriginAddress?
    /// Stored before this time.
    package var storedBefore: Timestamp?

    package init() {}

    /// The selection as text, from which `init(text:)` makes an equal one.
    package var text: String {
        let value: JSONValue = [
            "urls": .array(urls.map { .string($0) }), "prefix": .optional(prefix), "glob": .optional(glob),
            "groups": .array(groups.map { .string($0) }), "category": .optional(category), "origin": .optional(origin?.url),
            "storedBefore": storedBefore.map { .number(JSONNumber($0.milliseconds)) } ?? .null,
        ]
        return String(decoding: value.serialized(), as: UTF8.self)
    }

    /// - Returns: nil for a text of another form, which may select more than was meant.
    package init?(text: String) {
        guard let value = try? JSONValue.parse(Array(text.utf8)), let urls = value["urls"]?.array, let groups = value["groups"]?.array
        else { return nil }
        (self.urls, self.groups) = (urls.compactMap(\.string), groups.compactMap(\.string))
        (prefix, glob, category) = (value["prefix"]?.string, value["glob"]?.string, value["category"]?.string)
        origin = value["origin"]?.string.flatMap { try? RequestHead(url: $0) }?.origin
        storedBefore = value["storedBefore"]?.integer.map { Timestamp(milliseconds: $0) }
        guard self.text == text else { return nil }
    }

    /// SQL conditions that form the selection as a union; each finds its rows by an index where there is one.
    var conditions: [(String, StatementArguments)] {
        let (common, arguments) = commonConditions
        let all = { (first: [String]) in (first + common).isEmpty ? "id > 0" : (first + common).joined(separator: " AND ") }
        guard !urls.isEmpty else { return [(all([]), arguments)] }
        return urls.map { (all(["url = ?"]), [$0] + arguments) }
    }

    private var commonConditions: ([String], StatementArguments) {
        var conditions: [String] = []
        var arguments = StatementArguments()
        func add(_ condition: String, _ values: [(any DatabaseValueConvertible)?]) {
            conditions.append(condition)
            arguments += StatementArguments(values)
        }
        if let prefix { add("url >= ? AND url < ?", [prefix, prefix + "\u{10FFFF}"]) }
        if let glob {
            let beginning = String(glob.prefix { $0 != "*" })
            add("url >= ? AND url < ? AND url GLOB ?", [beginning, beginning + "\u{10FFFF}", Self.escaped(glob)])
        }
        if !groups.isEmpty {
            let marks = groups.map { _ in "?" }.joined(separator: ", ")
            let place = origin == nil ? "" : " AND origin = ?"
            add("id IN (SELECT entry FROM entry_group WHERE name IN (\(marks))\(place))", groups + (origin.map { [$0.url] } ?? []))
        }
        if let category { add("category = ?", [category]) }
        if let origin { add("origin = ?", [origin.url]) }
        if let storedBefore { add("stored_at < ?", [storedBefore.milliseconds]) }
        return (conditions, arguments)
    }

    /// Takes from SQLite's GLOB what a URL may hold literally: `?` and `[`.
    private static func escaped(_ glob: String) -> String {
        String(glob.flatMap { character -> [Character] in character == "?" || character == "[" ? ["[", character, "]"] : [character] })
    }
}
