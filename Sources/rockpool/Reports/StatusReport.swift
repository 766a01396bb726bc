// `/v1/status` and `/v1/network` as tables (docs/reference/admin-api.md#status).

struct StatusReport: TabularReport, Equatable {
    struct Upstream: Decodable, Equatable {
        var name: String
        var origin: String?
        var mode: String?
        var reachability: String
        var since: String?
        var lastError: String?
        var bandwidth: Word?
    }

    var state: String
    var pending: Int
    var conflicts: Int
    var failed: Int
    var upstreams: [Upstream]
    var version: String?
    var configFile: String?
    var stateDir: String?
    var dashboard: String?

    var tables: [TextTable] {
        let facts = TextTable.facts(
            [
                ("state", .init(state, Self.colour(of: state))),
                ("pending", "\(pending)"),
                ("conflicts", .init("\(conflicts)", conflicts > 0 ? .warning : nil)),
                ("failed", .init("\(failed)", failed > 0 ? .bad : nil)),
            ] + places)
        let list = TextTable(
            columns: [.text("UPSTREAM"), .text("ORIGIN"), .text("REACHABILITY"), .text("SINCE"), .text("BANDWIDTH"), .text("LAST ERROR")],
            rows: upstreams.map { upstream in
                [
                    .init(upstream.name), .init(upstream.origin ?? "–"),
                    .init(upstream.reachability, Self.colour(of: upstream.reachability)),
                    .init(ForPeople.time(upstream.since)), .init(upstream.bandwidth?.text ?? "–"), .init(upstream.lastError ?? "–"),
                ]
            })
        return [facts, list]
    }

    /// The process behind the answer, as far as it says.
    private var places: [(String, TextTable.Cell)] {
        guard let version else { return [] }
        return [
            ("version", "\(version)"), ("configuration", "\(configFile ?? "none")"), ("state directory", "\(stateDir ?? "–")"),
            ("dashboard", "\(dashboard ?? "–")"),
        ]
    }

    /// The colour of a sync state or a reachability.
    static func colour(of state: String) -> Colour? {
        switch state {
        case "synced", "online": .good
        case "syncing", "pending", "suspect": .warning
        case "offline", "error", "captive": .bad
        default: nil
        }
    }
}
