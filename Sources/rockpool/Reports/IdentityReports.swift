// Reports of `identities` as tables (docs/reference/admin-api.md#identities).

struct IdentitiesReport: TabularReport, Equatable {
    struct Item: Decodable, Equatable {
        var id: String
        var upstreams: [String]
        var entries: Int
        var bytes: Int64
        var waiting: Int
        var credential: Bool
        var sealed: Bool
        var usedAt: String?
    }

    var items: [Item]

    var emptyNote: String? { "no identities" }

    var tables: [TextTable] {
        [
            TextTable(
                columns: [
                    .id("ID"), .text("UPSTREAMS"), .number("COPIES"), .number("SIZE"), .number("WAITING"), .text("CREDENTIAL"),
                    .text("LAST READ"),
                ],
                rows: items.map { item in
                    [
                        .init(item.id), .init(item.upstreams.joined(separator: ", ")), "\(item.entries)",
                        .init(ForPeople.bytes(item.bytes)), "\(item.waiting)",
                        .init(item.sealed ? "sealed" : item.credential ? "in memory" : "–"), .init(ForPeople.age(item.usedAt)),
                    ]
                })
        ]
    }
}

struct ForgottenReport: TabularReport, Equatable {
    var id: String
    var entries: Int
    var bytes: Int64
    var credential: Bool
    var dropped: Int
    var waiting: Int

    var tables: [TextTable] {
        [
            .facts([
                ("removed copies", .init("\(entries) (\(ForPeople.bytes(bytes)))")),
                ("removed credential", .init(credential ? "yes" : "no")),
                ("dropped writes", "\(dropped)"), ("waiting writes", "\(waiting)"),
            ])
        ]
    }
}
