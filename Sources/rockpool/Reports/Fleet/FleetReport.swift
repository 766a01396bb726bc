// The report of the nodes of a fleet.
import RockpoolCore

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
        /// The keys of settings that differ from those of the node that answers.
        var differs: [String]?
    }

    var items: [Node]
    var emptyNote: String? { "no fleet: outbox.store is sqlite" }

    var tables: [TextTable] {
        guard !items.isEmpty else { return [] }
        let notes = items.compactMap { node in
            node.differs.flatMap { $0.isEmpty ? nil : FleetDifference(node: "", name: node.name, keys: $0) }
        }.map { TextTable(columns: [.text("")], rows: [[.init($0.advice, .warning)]]) }
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
        ] + notes
    }
}
