// The report of the nodes of a fleet.

struct FleetReport: TabularReport, Equatable {
    struct Node: Decodable, Equatable {
        var name: String
        /// True for the node that answers.
        var own: Bool
        var state: String
        var renewedSecondsAgo: Double
        var behind: Int
        var held: Int
        var inflight: Int
    }

    var items: [Node]
    var emptyNote: String? { "no fleet: outbox.store is sqlite" }

    var tables: [TextTable] {
        guard !items.isEmpty else { return [] }
        return [
            TextTable(
                columns: [.text("NODE"), .text("STATE"), .text("LEASE RENEWED"), .text("BEHIND"), .text("IN FLIGHT"), .text("HELD")],
                rows: items.map { node in
                    [
                        .init(node.own ? "\(node.name) (this)" : node.name), .init(node.state, node.state == "live" ? .good : .bad),
                        .init("\(Int(max(0, node.renewedSecondsAgo))) s ago"), .init("\(node.behind)"), .init("\(node.inflight)"),
                        .init("\(node.held)", node.held > 0 ? .warning : nil),
                    ]
                })
        ]
    }
}
