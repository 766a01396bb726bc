// The report of `rockpool fleet status`: the nodes of a fleet with the states of its outbox, or the sites of a collector.

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
        }

        var site: String
        var silent: Bool
        var heardAt: String?
        var report: Report?

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
