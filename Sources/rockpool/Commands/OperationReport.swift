// Operations of the outbox as tables (contract §4).

struct OperationReport: TabularReport, Equatable {
    var id: String
    var state: String
    var reason: String?
    var method: String
    var url: String
    var upstream: String?
    var entity: String?
    var lane: String?
    var idempotencyKey: String?
    var attempts: Int?
    var acceptedAt: String?
    var nextAttemptAt: String?
    var lastError: String?
    var priority: Int?
    var localId: String?
    var serverId: String?

    var tables: [TextTable] {
        let facts: [(String, TextTable.Cell?)] = [
            ("id", .init(id)), ("state", stateCell), ("request", "\(method) \(url)"), ("upstream", upstream.map { .init($0) }),
            ("entity", entity.map { .init($0) }), ("lane", lane.map { .init($0) }), ("idempotency key", idempotencyKey.map { .init($0) }),
            ("attempts", attempts.map { "\($0)" }), ("accepted", acceptedAt.map { .init(ForPeople.time($0)) }),
            ("next attempt", nextAttemptAt.map { .init(ForPeople.time($0)) }), ("last error", lastError.map { .init($0, .bad) }),
            ("priority", priority.map { "\($0)" }), ("local id", localId.map { .init($0) }), ("server id", serverId.map { .init($0) }),
        ]
        return [.facts(facts.compactMap { name, cell in cell.map { (name, $0) } })]
    }

    /// The state with its reason: `parked (auth)`.
    var stateCell: TextTable.Cell {
        let colour: Colour? =
            switch state {
            case "delivered": .good
            case "uncertain", "conflicted", "parked": .warning
            case "dead": .bad
            default: nil
            }
        return .init(state + (reason.map { " (\($0))" } ?? ""), colour)
    }
}

struct OperationListReport: TabularReport, Equatable {
    var items: [OperationReport]

    var emptyNote: String? { "no operations" }

    var tables: [TextTable] {
        [
            TextTable(
                columns: [.text("ID"), .text("STATE"), .text("REQUEST"), .number("ATTEMPTS"), .text("ACCEPTED"), .text("LAST ERROR")],
                rows: items.map { operation in
                    [
                        .init(operation.id), operation.stateCell, "\(operation.method) \(operation.url)", "\(operation.attempts ?? 0)",
                        .init(ForPeople.time(operation.acceptedAt)), .init(operation.lastError ?? "–"),
                    ]
                })
        ]
    }
}
