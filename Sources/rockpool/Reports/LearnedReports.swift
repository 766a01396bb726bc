// Reports of `learned` as tables (docs/reference/admin-api.md#learned).
import RockpoolCore

struct LearnedListReport: TabularReport, Equatable {
    struct Item: Decodable, Equatable {
        var upstream: String
        var state: String
        var collection: String
        var resource: Known?
        var reason: String
        var missing: String?
    }

    /// A resource by the names of the configuration.
    struct Known: Decodable, Equatable {
        var collection: String
        var item: String?
        var items: String
        var element: String
        var envelope: String
        var content: String?
        var id: String
        var version: String
        var updatedAt: String?
        var profile: String?
        var creates: Bool
    }

    var items: [Item]

    var emptyNote: String? { "nothing was learned; it is learned from reads of lists and their entries" }

    var tables: [TextTable] {
        [
            TextTable(
                columns: [.text("UPSTREAM"), .text("STATE"), .text("COLLECTION"), .text("ENTRY"), .text("SHOWN BY"), .text("MISSING")],
                rows: items.map { item in
                    [
                        .init(item.upstream), .init(item.state), .init(item.collection), .init(item.resource?.item ?? "–"),
                        .init(item.reason), .init(item.missing ?? "–"),
                    ]
                })
        ]
    }
}

extension LearnedListReport.Item {
    /// The resource as it is written into a configuration; nil if it is not known.
    var proposed: ProposedResource? {
        guard let resource, let item = resource.item else { return nil }
        var proposed = ProposedResource(
            collection: resource.collection, item: item, items: resource.items, element: resource.element, envelope: resource.envelope,
            profile: resource.profile.flatMap(Profile.init(rawValue:)), id: resource.id, updatedAt: resource.updatedAt)
        proposed.version = resource.version
        proposed.content = resource.content ?? ""
        proposed.isOptimistic = resource.creates
        proposed.evidence = ["Learned from \(reason)"]
        return proposed
    }
}

struct ForgottenLearningReport: TabularReport, Equatable {
    var upstream: String
    var forgotten: Int

    var tables: [TextTable] { [.facts([("upstream", .init(upstream)), ("forgotten", "\(forgotten)")])] }
}
