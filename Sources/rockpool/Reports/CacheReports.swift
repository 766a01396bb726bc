// Reports of the cache commands as tables (docs/reference/cli.md#cache).
import RockpoolCore

struct CacheListReport: TabularReport, Equatable {
    struct Item: Decodable, Equatable {
        var url: String
        var method: String
        var category: String
        var status: Int
        var bytes: Int64
        var storedAt: String
        var freshUntil: String
        /// The end of its use while the upstream is away; nil without an end.
        var offlineUntil: String?
        var lastUsedAt: String
        var pinned: Bool
        var identity: String
        var variants: Int
        var hits: Int64
    }

    var items: [Item]

    var emptyNote: String? { "nothing stored" }

    var tables: [TextTable] {
        [
            TextTable(
                columns: [
                    .text("URL"), .number("STATUS"), .number("SIZE"), .number("HITS"), .text("CATEGORY"), .text("STORED"),
                    .text("FRESH UNTIL"),
                    .text("OFFLINE UNTIL"),
                    .text("IDENTITY"), .text("PINNED"),
                ],
                rows: items.map { item in
                    [
                        .init(item.method == "GET" ? item.url : "\(item.method) \(item.url)"), .init("\(item.status)"),
                        .init(ForPeople.bytes(item.bytes)), "\(item.hits)", .init(item.category), .init(ForPeople.age(item.storedAt)),
                        .init(ForPeople.age(item.freshUntil)), .init(item.offlineUntil.map { ForPeople.age($0) } ?? "always"),
                        .init(item.identity), .init(item.pinned ? "pinned" : ""),
                    ]
                })
        ]
    }
}

/// One stored variant, from `/v1/cache/entry` and `/v1/cache/explain`.
struct VariantReport: Decodable, Equatable {
    struct Field: Decodable, Equatable {
        var name: String
        var value: String
    }

    struct Arithmetic: Decodable, Equatable {
        var freshnessLifetime: Double
        var source: String
        var currentAge: Double
        var remaining: Double

        private var lifetime: Int { Int(freshnessLifetime.clamped) }
        private var age: Int { Int(currentAge.clamped) }
        var ttl: Int { Int(remaining.clamped) }

        /// The arithmetic as text: `60 s by max-age, age 12 s, 48 s left`.
        var text: String { "\(lifetime) s by \(source), age \(age) s, \(ttl >= 0 ? "\(ttl) s left" : "stale for \(-ttl) s")" }
    }

    var status: Int
    var method: String
    var category: String
    var identity: String
    var bytes: Int64
    var storedAt: String
    var pinned: Bool
    var invalidated: Bool
    var requestFields: [Field]
    var fields: [Field]
    var arithmetic: Arithmetic

    var facts: [(String, TextTable.Cell)] {
        var facts: [(String, TextTable.Cell)] = [
            ("status", "\(status)"), ("identity", .init(identity)), ("category", .init(category)),
            ("body", .init(ForPeople.bytes(bytes))), ("stored", .init(ForPeople.time(storedAt))),
            ("freshness", .init(arithmetic.text, arithmetic.ttl >= 0 ? .good : .warning)),
        ]
        if pinned { facts.append(("pinned", "yes")) }
        if invalidated { facts.append(("invalidated", .init("revalidated before use", .warning))) }
        facts += requestFields.map { ("for requests with", "\($0.name): \($0.value)") }
        return facts + fields.map { ("", "\($0.name): \($0.value)") }
    }
}

struct CacheEntryReport: TabularReport, Equatable {
    var url: String
    var variants: [VariantReport]

    var tables: [TextTable] {
        [.facts([("url", .init(url)), ("variants", "\(variants.count)")])] + variants.map { .facts($0.facts) }
    }
}

struct ExplanationReport: TabularReport, Equatable {
    var url: String
    var key: String
    /// The partition whose responses may answer the request.
    var partition: String
    var variants: [VariantReport]
    var vary: [String]
    var arithmetic: VariantReport.Arithmetic?
    var lines: [String]
    var decision: String
    var reason: String
    var why: String
    var next: String
    var category: String?
    var strategy: String
    var policy: String
    var reachability: String
    /// The last event of the request's cache key; nil if none is recorded.
    var last: LastEvent?

    struct LastEvent: Codable, Equatable {
        var event: String
        var reason: String?
        var at: String

        var text: String { "\(event)\(reason.map { " (\($0))" } ?? ""), \(at)" }
    }

    /// The line of configuration that would give a lifetime, where the API names none.
    private var longer: String? {
        guard let arithmetic, arithmetic.source == "none", let start = url.firstRange(of: "://")?.upperBound else {
            return nil
        }
        let path = url[start...].firstIndex(of: "/").map { url[$0...].prefix { $0 != "?" } } ?? "/"
        let name = category.flatMap { $0 == "ephemeral" ? nil : $0 } ?? "important"
        return "the API names no lifetime; in routes of the upstream: { match: \"\(path)\", category: \(name) } gives it the ttl of \(name)"
    }

    var tables: [TextTable] {
        let facts: [(String, TextTable.Cell?)] = [
            ("answer", .init("\(next), because \(why)", .heading)), ("url", .init(url)), ("decision", .init("\(decision) (\(reason))")),
            ("freshness", arithmetic.map { .init($0.text) }), ("longer", longer.map { .init($0) }), ("variants", "\(variants.count)"),
            ("varies by", vary.isEmpty ? nil : .init(vary.joined(separator: ", "))), ("identity", .init(partition)),
            ("category", category.map { .init($0) }), ("strategy", .init(strategy)), ("policy", .init(policy)),
            ("upstream", .init(StatusReport.words(of: reachability), StatusReport.colour(of: reachability))),
            ("last", last.map { .init($0.text) }), ("key", .init(key.replacing("\n", with: " | "))),
        ]
        let arithmetic = lines.enumerated().map { ($0 == 0 ? "arithmetic" : "", TextTable.Cell($1)) }
        return [.facts(facts.compactMap { name, cell in cell.map { (name, $0) } } + arithmetic)]
    }
}

struct PurgeReport: TabularReport, Equatable, Encodable {
    var dryRun: Bool
    var entries: Int
    var bytes: Int64

    static func + (a: Self, b: Self) -> Self { PurgeReport(dryRun: a.dryRun, entries: a.entries + b.entries, bytes: a.bytes + b.bytes) }

    var tables: [TextTable] {
        let what = "\(entries.counted("entry", "entries")), \(ForPeople.bytes(bytes))"
        return [.facts([(dryRun ? "would remove" : "removed", .init(what))])]
    }
}

struct PrefetchReport: TabularReport, Equatable, Encodable {
    struct Item: Codable, Equatable {
        var url: String
        var status: Int?
        var stored: Bool
        var reason: String?
        var bytes: Int64
        var pinned: Bool
        var offlineUntil: String?
    }

    var items: [Item]
    var stored: Int

    static func += (a: inout Self, b: Self) { a = PrefetchReport(items: a.items + b.items, stored: a.stored + b.stored) }

    var tables: [TextTable] {
        [
            TextTable(
                columns: [.text("URL"), .number("STATUS"), .number("SIZE"), .text("OFFLINE UNTIL"), .text("STORED")],
                rows: items.map { item in
                    let until = item.stored ? item.offlineUntil.map { ForPeople.age($0) } ?? "always" : "–"
                    let kept = item.pinned ? "pinned" : "yes"
                    return [
                        .init(item.url), .init(item.status.map { "\($0)" } ?? "–"), .init(ForPeople.bytes(item.bytes)),
                        .init(until),
                        .init(item.stored ? [kept, item.reason].compactMap(\.self).joined(separator: ", ") : "no: \(item.reason ?? "")"),
                    ]
                })
        ]
    }
}

struct ImportReport: TabularReport, Equatable {
    struct Skipped: Decodable, Equatable {
        var record: Int
        var url: String
        var reason: String
    }

    var imported: Int
    var bytes: Int64
    var skippedCount: Int
    var skipped: [Skipped]

    var tables: [TextTable] {
        [
            .facts([
                ("imported", "\(imported.counted("entry", "entries")), \(ForPeople.bytes(bytes))"),
                ("skipped", "\(skippedCount)"),
            ]),
            TextTable(
                columns: [.number("RECORD"), .text("URL"), .text("REASON")],
                rows: skipped.map { [.init("\($0.record)"), .init($0.url), .init($0.reason)] }),
        ]
    }
}

extension Double {
    /// Whole seconds that fit an integer: a freshness lifetime may be infinite.
    fileprivate var clamped: Double { Swift.min(1e15, Swift.max(-1e15, rounded(.down))) }
}
