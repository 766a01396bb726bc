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
