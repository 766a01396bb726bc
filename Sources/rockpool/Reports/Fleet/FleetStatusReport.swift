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
