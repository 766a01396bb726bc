// Reports of `sync` and `entities` as tables (docs/reference/admin-api.md#sync).

struct PushedReport: TabularReport, Equatable {
    var flushed: Int
    var delivered: Int
    var open: [String: Int]
    var held: [HeldReport]?

    var tables: [TextTable] {
        let waiting = open.sorted { $0.key < $1.key }.map { ($0.key, TextTable.Cell("\($0.value)")) }
        let held = (held ?? []).map { ("held", TextTable.Cell($0.line)) }
        return [.facts([("delivered", "\(delivered)")] + waiting + held)]
    }
}

/// A push, a pull, and what then waits for a person.
struct SyncedReport: TabularReport, Equatable {
    var push: PushedReport
    var pull: PulledReport
    var conflicts: ConflictListReport

    var tables: [TextTable] {
        let pulled = pull.items.isEmpty ? [TextTable.facts([("pulled", .init(pull.emptyNote ?? ""))])] : pull.tables
        let open = conflicts.items.isEmpty ? [TextTable.facts([("conflicts", "none waits for a decision")])] : conflicts.tables
        return push.tables + pulled + open
    }
}

struct PulledReport: TabularReport, Equatable {
    struct Item: Decodable, Equatable {
        var upstream: String
        var resource: String
        var identity: String
        var full: Bool
        var changed: Int
        var gone: Int
        var withheld: Int
        var conflictsAhead: Int
        var error: String?
    }

    var items: [Item]

    var emptyNote: String? { "no resource has a request for changes (delta, sync)" }

    var tables: [TextTable] {
        [
            TextTable(
                columns: [
                    .text("UPSTREAM"), .text("RESOURCE"), .text("IDENTITY"), .number("CHANGED"), .number("GONE"), .number("WITHHELD"),
                    .number("CONFLICTS AHEAD"), .text("RESULT"),
                ],
                rows: items.map { item in
                    [
                        .init(item.upstream), .init(item.resource), .init(item.identity), "\(item.changed)", "\(item.gone)",
                        "\(item.withheld)", "\(item.conflictsAhead)",
                        item.error.map { .init($0, .bad) } ?? .init(item.full ? "full listing" : "changes"),
                    ]
                })
        ]
    }
}

struct SyncLogReport: TabularReport, Equatable {
    struct Item: Decodable, Equatable {
        var at: String
        var operation: String?
        var event: String
        var method: String?
        var url: String?
        var client: String?
        var userAgent: String?
        var detail: String?

        /// The program and the identity that sent the write.
        var device: String? {
            let parts = [userAgent, client].compactMap(\.self)
            return parts.isEmpty ? nil : parts.joined(separator: " ")
        }
    }

    var items: [Item]

    var emptyNote: String? { "no events" }

    var tables: [TextTable] {
        let ids = ForPeople.ids(items.map { $0.operation ?? "–" })
        return [
            TextTable(
                columns: [
                    .text("AT"), .id("OPERATION"), .text("DEVICE"), .text("METHOD"), .text("URL"), .text("EVENT"), .text("DETAIL"),
                ],
                rows: zip(ids, items).map { id, item in
                    [
                        .init(ForPeople.age(item.at)), .init(id), .init(item.device ?? "–"), .init(item.method ?? "–"),
                        .init(item.url.map { ForPeople.target($0) } ?? "–"), .init(item.event), .init(item.detail ?? "–"),
                    ]
                })
        ]
    }
}

struct EntitiesReport: TabularReport, Equatable {
    struct Item: Decodable, Equatable {
        var upstream: String
        var resource: String
        var cached: Int
        var serverCount: Int?
        var pending: Int
        var conflicts: Int
        var lastSync: String?
        var states: [String: Int]?
        var strategy: String?

        /// The entities that differ from the upstream's: `1 pending-create, 2 pending-update`.
        var differing: String {
            let counts = (states ?? [:]).filter { $0.value > 0 }.sorted { $0.key < $1.key }
            return counts.isEmpty ? "–" : counts.map { "\($0.value) \($0.key)" }.joined(separator: ", ")
        }
    }

    var items: [Item]

    var emptyNote: String? { "no resources declared" }

    var tables: [TextTable] {
        [
            TextTable(
                columns: [
                    .text("UPSTREAM"), .text("RESOURCE"), .number("CACHED"), .number("UPSTREAM HAS"), .number("PENDING"),
                    .number("CONFLICTS"), .text("LAST SYNC"), .text("DIFFERING"), .text("STRATEGY"),
                ],
                rows: items.map { item in
                    [
                        .init(item.upstream), .init(item.resource), "\(item.cached)", .init(item.serverCount.map { "\($0)" } ?? "–"),
                        "\(item.pending)", "\(item.conflicts)", .init(ForPeople.age(item.lastSync)), .init(item.differing),
                        .init(item.strategy ?? "–"),
                    ]
                })
        ]
    }
}
