// The outbox and the conflicts of a fleet as tables, with the nodes of each item (docs/reference/admin-api.md#fleet).

struct FleetOutboxReport: TabularReport, Equatable {
    struct Item: Decodable, Equatable {
        var operation: OperationReport
        var place: FleetPlaceReport

        init(from decoder: any Decoder) throws {
            (operation, place) = (try OperationReport(from: decoder), try FleetPlaceReport(from: decoder))
        }
    }

    var items: [Item]

    var emptyNote: String? { "no operations" }

    var tables: [TextTable] {
        let ids = ForPeople.ids(items.map(\.operation.id))
        return [
            TextTable(
                columns: [
                    .id("ID"), .text("STATE"), .text("REQUEST"), .text("TAKEN BY"), .text("SENT BY"), .text("ACCEPTED"), .text("WHY"),
                ],
                rows: zip(ids, items).map { id, item in
                    let operation = item.operation
                    return [
                        .init(id), operation.stateCell, "\(operation.method) \(ForPeople.target(operation.url))",
                        .init(item.place.takenBy ?? "–"), .init(item.place.sentBy ?? "–"), .init(ForPeople.age(operation.acceptedAt)),
                        .init(operation.why),
                    ]
                })
        ]
    }
}

struct FleetConflictsReport: TabularReport, Equatable {
    struct Item: Decodable, Equatable {
        var conflict: ConflictReport
        var place: FleetPlaceReport

        init(from decoder: any Decoder) throws {
            (conflict, place) = (try ConflictReport(from: decoder), try FleetPlaceReport(from: decoder))
        }
    }

    var items: [Item]

    var emptyNote: String? { "no conflicts" }

    var tables: [TextTable] {
        let ids = ForPeople.ids(items.map(\.conflict.id))
        return [
            TextTable(
                columns: [.id("ID"), .text("KIND"), .text("ENTITY"), .text("TAKEN BY"), .text("OPENED"), .text("OUTCOME")],
                rows: zip(ids, items).map { id, item in
                    [
                        .init(id), .init(item.conflict.kind), .init(item.conflict.entity), .init(item.place.takenBy ?? "–"),
                        .init(ForPeople.age(item.conflict.openedAt)), item.conflict.outcomeCell,
                    ]
                })
        ]
    }
}

/// The nodes that have to do with an item, by name.
struct FleetPlaceReport: Decodable, Equatable {
    /// The node that took the operation.
    var takenBy: String?
    /// The node that has its lane in flight.
    var sentBy: String?
}
