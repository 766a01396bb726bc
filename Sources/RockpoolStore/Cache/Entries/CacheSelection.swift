// Several conditions that an entry must all meet (docs/reference/admin-api.md#purge).
import FoundationEssentials
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
    func conditions(_ index: IndexSeal) -> [(String, StatementArguments)] {
        let (common, arguments) = commonConditions(index)
        let all = { (first: [String]) in (first + common).isEmpty ? "id > 0" : (first + common).joined(separator: " AND ") }
        guard !urls.isEmpty else { return [(all([]), arguments)] }
        return urls.flatMap(index.forms).map { (all(["url = ?"]), [$0] + arguments) }
    }

    private func commonConditions(_ index: IndexSeal) -> ([String], StatementArguments) {
        var conditions: [String] = []
        var arguments = StatementArguments()
        func add(_ condition: String, _ values: [(any DatabaseValueConvertible)?]) {
            conditions.append(condition)
            arguments += StatementArguments(values)
        }
        if let prefix = prefix.map({ index.sealed($0) }) { add("url >= ? AND url < ?", [prefix, prefix + "\u{10FFFF}"]) }
        if let glob = glob.map({ index.sealed(glob: $0) }) {
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

/// The selection of entries to remove.
package enum CacheFilter: Hashable, Sendable {
    /// Exactly these URLs, every identity and variant.
    case urls([String])
    /// All URLs with this prefix.
    case prefix(String)
    case category(String)
    /// All entries in this cache group of one origin, or of every origin when nil (RFC 9875).
    case group(String, origin: OriginAddress?)
    case upstream(OriginAddress)
    /// All entries that meet every condition.
    case matching(CacheSelection)
    /// All entries in the partition of this name; of one origin, or of every origin when nil.
    case identity(String, origin: OriginAddress?)
    case all
}

/// An entry selected for removal.
struct EvictionCandidate: Sendable {
    var id: Int64
    var key: String
    var category: String
    var bytes: Int64
    var inlineBytes: Int64
    var usedAt: Timestamp
    /// The hash of a body that is a file; nil for a body in its row.
    var fileHash: [UInt8]?
    /// True if it was not read since it was stored (docs/storage.md#eviction).
    var isOnProbation = false
    /// Its rank in its category: the lowest leaves first.
    var rank: Double = 0

    /// Returns the rows that meet a condition, in the given order.
    static func fetch(
        in db: Database, where condition: String, arguments: StatementArguments, order: String = "id", limit: Int
    ) throws -> [EvictionCandidate] {
        let statement = try db.cachedStatement(
            sql: """
                SELECT id, key, category, bytes, in_file, used_at, body_sha, uses = \(CacheSchema.unread), rank FROM entry WHERE \(condition) ORDER BY \(order) LIMIT \(limit)
                """)
        return try Row.fetchAll(statement, arguments: arguments).map { row in
            var columns = RowReader(row)
            let (id, key, category): (Int64, String, String) = (try columns.next(), try columns.next(), try columns.next())
            let bytes: Int64 = try columns.next()
            let isInFile: Bool = try columns.next()
            let usedAt = Timestamp(milliseconds: try columns.next())
            let hash: Data = try columns.next()
            return EvictionCandidate(
                id: id, key: key, category: category, bytes: bytes, inlineBytes: isInFile ? 0 : bytes, usedAt: usedAt,
                fileHash: isInFile ? Array(hash) : nil, isOnProbation: try columns.next(), rank: try columns.next())
        }
    }
}

extension [EvictionCandidate] {
    /// Returns the shortest prefix that takes `bytes` in total.
    func reaching(_ bytes: Int64) -> [EvictionCandidate] {
        var left = bytes
        return Array(
            prefix { row in
                defer { left -= row.bytes }
                return left > 0
            })
    }
}

/// The entries and bytes that were (or would be) removed.
package struct RemovalCount: Hashable, Sendable, Codable {
    package var entries: Int
    package var bytes: Int64

    package init(entries: Int = 0, bytes: Int64 = 0) {
        self.entries = entries
        self.bytes = bytes
    }
}
