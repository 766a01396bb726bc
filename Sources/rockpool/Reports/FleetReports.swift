// Reports of a fleet: its nodes and sites, its outbox and conflicts, and what a move or a return changed
// (docs/reference/admin-api.md#fleet).
import RockpoolCore
import RockpoolStore

/// The report of `rockpool fleet status`: the nodes of a fleet with the states of its outbox, or the sites of a collector.
struct FleetStatusReport: TabularReport, Equatable {
    struct Site: Decodable, Equatable {
        /// What the site has said of itself.
        struct Report: Decodable, Equatable {
            var state: String?
            var pending: Int?
            var conflicts: Int?
            var failed: Int?
            var oldestPendingSeconds: Double?
            var version: String?

            private enum CodingKeys: CodingKey { case state, pending, conflicts, failed, oldestPendingSeconds, version }

            /// A member that is not what it should be is left out: it comes from another machine.
            init(from decoder: any Decoder) throws {
                let members = try decoder.container(keyedBy: CodingKeys.self)
                func value<T: Decodable>(_ key: CodingKeys) -> T? { (try? members.decodeIfPresent(T.self, forKey: key)) ?? nil }
                (state, pending, conflicts, failed) = (value(.state), value(.pending), value(.conflicts), value(.failed))
                (oldestPendingSeconds, version) = (value(.oldestPendingSeconds), value(.version))
            }
        }

        var site: String
        var silent: Bool
        var heardAt: String?
        var report: Report?

        private enum CodingKeys: CodingKey { case site, silent, heardAt, report }

        init(from decoder: any Decoder) throws {
            let members = try decoder.container(keyedBy: CodingKeys.self)
            site = try members.decode(String.self, forKey: .site)
            silent = try members.decode(Bool.self, forKey: .silent)
            heardAt = try members.decodeIfPresent(String.self, forKey: .heardAt)
            report = (try? members.decodeIfPresent(Report.self, forKey: .report)) ?? nil
        }

        /// True if it is silent, or a write of it waits for a person.
        var needsPerson: Bool { silent || (report?.conflicts ?? 0) > 0 || (report?.failed ?? 0) > 0 }
    }

    var nodes: [FleetReport.Node]
    /// Operations by state; nil at a collector.
    var outbox: [String: Int]?
    var sites: [Site]

    var emptyNote: String? {
        outbox == nil
            ? "no site is known; add one: rockpool fleet add SITE --state-dir DIR" : FleetReport(items: []).emptyNote
    }

    /// True if something waits for a person, a site is silent, or a node does not hold its lease.
    var needsPerson: Bool {
        sites.contains(where: \.needsPerson) || nodes.contains { $0.state != "live" } || (outbox?["dead"] ?? 0) > 0
            || (outbox?["conflicted"] ?? 0) > 0
    }

    var tables: [TextTable] {
        let open = nodes.isEmpty ? [] : (outbox ?? [:]).filter { $0.value > 0 }.sorted { $0.key < $1.key }
        return FleetReport(items: nodes).tables + [
            TextTable.facts(open.map { ($0.key, TextTable.Cell("\($0.value)")) }),
            TextTable(
                columns: [
                    .text("SITE"), .text("STATE"), .text("HEARD"), .number("PENDING"), .number("CONFLICTS"), .number("FAILED"),
                    .text("OLDEST WAITING"), .text("VERSION"),
                ],
                rows: sites.map(Self.row)),
        ]
    }

    private static func row(of site: Site) -> [TextTable.Cell] {
        let report = site.report
        let state = site.silent ? "silent" : report?.state ?? "–"
        func count(_ number: Int?, _ colour: Colour?) -> TextTable.Cell {
            TextTable.Cell(number.map { "\($0)" } ?? "–", (number ?? 0) > 0 ? colour : nil)
        }
        return [
            .init(site.site), .init(state, site.silent ? .bad : StatusReport.colour(of: state)), .init(ForPeople.age(site.heardAt)),
            count(report?.pending, nil), count(report?.conflicts, .warning), count(report?.failed, .bad),
            .init(report?.oldestPendingSeconds.map(ForPeople.seconds) ?? "–"), .init(report?.version ?? "–"),
        ]
    }
}

/// The report of the nodes of a fleet.
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

/// The outbox and the conflicts of a fleet as tables, with the nodes of each item (docs/reference/admin-api.md#fleet).
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

/// What an outbox has after its move, in numbers (docs/reference/cli.md#outbox-migrate).
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

/// What a node offers to its fleet when it comes back (docs/reference/cli.md#fleet-rejoin).
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
