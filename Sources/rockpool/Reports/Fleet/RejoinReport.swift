// What a node offers to its fleet when it comes back (docs/reference/cli.md#fleet-rejoin).
import RockpoolStore

struct RejoinReport: TabularReport, Encodable, Equatable {
    var offer: RejoinOffer

    var tables: [TextTable] {
        [
            .facts([
                ("writes that only this node has", .init("\(offer.held)", offer.held == 0 ? nil : .good)),
                ("open writes that the fleet had", "\(offer.seen)"),
            ])
        ]
    }
}
