// Conflicts as tables (docs/reference/admin-api.md#conflicts).

/// A conflict without its sides.
struct ConflictReport: TabularReport, Hashable {
    var id: String
    var operation: String
    var upstream: String
    var url: String
    var entity: String
    var kind: String
    var strategy: String
    var detection: String
    var openedAt: String
    var closedAt: String?
    var resolution: String?
    var decidedBy: String?

    var isOpen: Bool { closedAt == nil }

    /// `open`, or the resolution and its origin: `merged by field-merge`. Retrying or editing the operation leaves it to the next attempt.
    var outcome: String {
        if isOpen { return "open" }
        return (resolution ?? "left to the next attempt") + " by " + (decidedBy == "strategy" ? strategy : "a person")
    }

    var outcomeCell: TextTable.Cell { .init(outcome, isOpen ? .warning : nil) }

    var tables: [TextTable] {
        let facts: [(String, TextTable.Cell?)] = [
            ("id", .init(id)), ("outcome", outcomeCell), ("kind", .init(kind)), ("entity", .init(url)), ("upstream", .init(upstream)),
            ("operation", .init(operation)), ("strategy", .init(strategy)),
            ("detection", .init(detection == "weak" ? "weak: a change after the version check is not detected" : detection)),
            ("opened", .init(ForPeople.time(openedAt))), ("resolved", closedAt.map { .init(ForPeople.time($0)) }),
        ]
        return [.facts(facts.compactMap { name, cell in cell.map { (name, $0) } })]
    }

    /// The next command to use; nil if no side has lost.
    var advice: String? {
        if isOpen { return "resolve it: rockpool conflicts resolve \(id) --keep mine|theirs|both, or --merged FILE" }
        return ["mine", "theirs", "merged"].contains(resolution) ? "restore the losing side: rockpool conflicts undo \(id)" : nil
    }
}

struct ConflictListReport: TabularReport, Hashable {
    var items: [ConflictReport]

    var emptyNote: String? { "no conflicts" }

    var tables: [TextTable] {
        let ids = ForPeople.ids(items.map(\.id))
        return [
            TextTable(
                columns: [.id("ID"), .text("KIND"), .text("ENTITY"), .text("DETECTION"), .text("OPENED"), .text("OUTCOME")],
                rows: zip(ids, items).map { id, conflict in
                    [
                        .init(id), .init(conflict.kind), .init(conflict.entity), .init(conflict.detection),
                        .init(ForPeople.age(conflict.openedAt)), conflict.outcomeCell,
                    ]
                })
        ]
    }
}
