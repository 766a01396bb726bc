// What an outbox has after its move, in numbers (docs/reference/cli.md#outbox-migrate).
import RockpoolCore
import RockpoolStore

struct MigrationReport: TabularReport, Encodable, Equatable {
    var store: OutboxEngine
    var counts: OutboxCensus

    var tables: [TextTable] {
        [
            .facts([
                ("the outbox is in", .init(store == .sqlite ? "data.sqlite" : "PostgreSQL", .good)),
                ("operations", "\(counts.operations)"), ("of these open", "\(counts.open)"), ("bodies", "\(counts.bodies)"),
                ("keys of clients", "\(counts.keys)"), ("lines of history", "\(counts.history)"),
            ])
        ]
    }
}
