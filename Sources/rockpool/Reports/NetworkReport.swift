// The report of the network mode.

struct NetworkReport: TabularReport, Equatable {
    var mode: String
    var upstreams: [StatusReport.Upstream]

    var tables: [TextTable] {
        let list = TextTable(
            columns: [.text("UPSTREAM"), .text("MODE"), .text("REACHABILITY"), .text("SINCE"), .text("BANDWIDTH")],
            rows: upstreams.map { upstream in
                [
                    .init(upstream.name), .init(upstream.mode ?? mode),
                    .init(StatusReport.words(of: upstream.reachability), StatusReport.colour(of: upstream.reachability)),
                    .init(ForPeople.age(upstream.since)),
                    .init(upstream.bandwidth?.text ?? "–"),
                ]
            })
        let next = mode == "offline" ? [[TextTable.Cell("Next: send again, and what waits too: rockpool network auto")]] : []
        return [.facts([("mode", .init(mode))]), list, TextTable(columns: [.text("")], rows: next)]
    }
}

/// The report of a test of notices.
struct NoticeTestReport: TabularReport, Equatable {
    struct Item: Decodable, Equatable {
        var on: [String]
        var target: String
        /// `sent`, `waiting` or `failed`.
        var outcome: String
        var detail: String?
        var operation: String?
    }

    var items: [Item]

    var tables: [TextTable] {
        let rows = items.map { item in
            [
                TextTable.Cell(item.target),
                .init(item.outcome, item.outcome == "failed" ? .bad : item.outcome == "sent" ? .good : .warning),
                .init(item.detail ?? "–"),
            ]
        }
        return [TextTable(columns: [.text("TARGET"), .text("OUTCOME"), .text("DETAIL")], rows: rows)]
    }
}
