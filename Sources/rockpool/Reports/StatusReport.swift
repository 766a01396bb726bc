// `/v1/status` and `/v1/network` as tables (docs/reference/admin-api.md#status).
import RockpoolCore

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

    struct Fleet: Decodable, Equatable {
        var node: String
        var database: String
        var detail: String?
        var nodes: Int
        var held: Int
        var survivesDatabaseHost: Bool
        var differences: [Difference]?

        /// A node with other settings.
        struct Difference: Decodable, Equatable {
            var node: String
            var keys: [String]
        }

        /// The nodes with other settings, in words; nil without one.
        var differing: String? {
            guard let differences, !differences.isEmpty else { return nil }
            return differences.map { FleetDifference(node: "", name: $0.node, keys: $0.keys).advice }.joined(separator: "; ")
        }

        /// What an acknowledgement of a write survives, in words.
        var words: String {
            guard database == "there" else { return "\(node): the database is away, \(held.counted("write")) kept here: \(detail ?? "")" }
            let loss = survivesDatabaseHost ? "survive the loss of" : "are lost with"
            return "\(node), one of \(nodes.counted("live node")); acknowledged writes \(loss) the database's host"
        }
    }

    /// A body of queued writes that cannot be read any more.
    struct Damaged: Decodable, Equatable {
        var body: String
        /// `missing` or `bad`.
        var what: String
        var operations: [String]

        var words: String { "\(body) is \(what == "missing" ? what : "damaged"), the body of \(operations.joined(separator: ", "))" }
    }

    /// The refused write that was accepted last.
    struct Failed: Decodable, Equatable {
        var upstream: String
        var method: String
        var url: String
        var cause: String?
        var next: String
    }

    /// The connection of the server's machine.
    struct Connection: Decodable, Equatable {
        var kind: String
        var interface: String
        var metered: Bool

        var words: String { "\(kind) (\(interface))\(metered ? ", metered" : "")" }
    }

    /// A parent proxy.
    struct Parent: Decodable, Equatable {
        /// The upstream, or the hosts of the rule.
        var of: String
        var url: String
        /// `up` or `down`.
        var state: String
        var since: String?
        var used: Bool
    }

    var state: String
    var pending: Int
    var conflicts: Int
    var failed: Int
    var lastFailed: Failed?
    var damaged: [Damaged]?
    var upstreams: [Upstream]
    /// The writes for which there was no room lately; nil without any.
    var refused: String?
    /// A shortage of storage, with the next command; nil without one.
    var storage: String?
    var version: String?
    var configFile: String?
    var stateDir: String?
    var dashboard: String?
    /// How this node stands in its fleet; nil without one.
    var fleet: Fleet?
    var connection: Connection?
    var parents: [Parent]?

    var tables: [TextTable] {
        let facts = TextTable.facts(
            [
                ("state", .init(stateWords, Self.colour(of: state))),
                ("pending", "\(pending)"),
                ("conflicts", .init("\(conflicts)", conflicts > 0 ? .warning : nil)),
                ("failed", .init("\(failed)", failed > 0 ? .bad : nil)),
            ] + (lastFailed.map { [("last failed", .init("\($0.method) \($0.url): \($0.cause ?? "refused")", .bad))] } ?? [])
                + (damaged ?? []).map { ("damaged", .init($0.words, .bad)) }
                + (refused.map { [("refused", .init($0, .bad))] } ?? [])
                + (storage.map { [("storage", .init($0, .warning))] } ?? [])
                + (fleet.map { [("fleet", .init($0.words, $0.database == "there" ? nil : .warning))] } ?? [])
                + (fleet?.differing.map { [("settings", .init($0, .warning))] } ?? [])
                + (connection.map { [("connection", .init($0.words))] } ?? []) + places)
        let list = TextTable(
            columns: [.text("UPSTREAM"), .text("ORIGIN"), .text("REACHABILITY"), .text("SINCE"), .text("BANDWIDTH"), .text("LAST ERROR")],
            rows: upstreams.map { upstream in
                [
                    .init(upstream.name), .init(upstream.origin ?? "–"),
                    .init(Self.words(of: upstream.reachability), Self.colour(of: upstream.reachability)),
                    .init(ForPeople.age(upstream.since)), .init(upstream.bandwidth?.text ?? "–"),
                    .init(upstream.lastError.map(Self.words(ofError:)) ?? "–"),
                ]
            })
        return [facts, list] + parentTables + [TextTable(columns: [.text("")], rows: [[.init(next)]])]
    }

    /// The parent proxies; none where none is configured.
    private var parentTables: [TextTable] {
        guard let parents, !parents.isEmpty else { return [] }
        let rows = parents.map { parent -> [TextTable.Cell] in
            [
                .init(parent.url), .init(parent.of), .init(parent.state, parent.state == "up" ? nil : .warning),
                .init(ForPeople.age(parent.since)), .init(parent.used ? "yes" : "no"),
            ]
        }
        return [TextTable(columns: [.text("PARENT"), .text("OF"), .text("STATE"), .text("SINCE"), .text("USED")], rows: rows)]
    }

    /// The upstreams of which nothing is known yet.
    private var untried: [Upstream] { upstreams.filter { $0.reachability == Reachability.State.untried.rawValue } }

    /// The state in a word that holds for all upstreams, or the number of those that are away or not tried.
    private var stateWords: String {
        if state == SyncState.synced.rawValue, !untried.isEmpty {
            return "no write waits; \(untried.count) of \(upstreams.count.counted("upstream")) not tried yet"
        }
        let away = upstreams.count { ["offline", "captive"].contains($0.reachability) }
        guard state == "offline", away > 0, away < upstreams.count else { return state }
        return away.counted("of \(upstreams.count) upstreams is away", "of \(upstreams.count) upstreams are away")
    }

    /// True if something waits for a person.
    var needsPerson: Bool { conflicts > 0 || failed > 0 || damaged != nil || refused != nil }

    /// The next step, as one line.
    private var next: String {
        if conflicts > 0 { return "Next: decide the conflicts: rockpool conflicts ls" }
        if damaged != nil { return "Next: put back the bodies from a backup, or discard the writes: rockpool doctor" }
        if failed == 1, let lastFailed { return "Next: see the write and its answer: \(lastFailed.next)" }
        if failed > 0 { return "Next: see what was not delivered, and why: rockpool outbox ls --state dead,uncertain,parked" }
        if refused != nil { return "Next: make room, as it says under refused" }
        if storage != nil { return "Next: make room: rockpool storage-cleanup --dry-run" }
        if upstreams.contains(where: { $0.mode == "offline" }) {
            return "Next: the network is switched off; rockpool network auto ends that"
        }
        if let captive = upstreams.first(where: { $0.reachability == "captive" }) {
            return "Next: sign in to the network: something else answers in the place of \(captive.name)"
        }
        if upstreams.isEmpty { return "Next: declare an API: rockpool add https://api.example.com" }
        if let unknown = upstreams.first(where: { $0.reachability == "offline" && $0.lastError == Self.unknownName }) {
            return
                "Next: the name of \(unknown.origin ?? unknown.name) does not resolve: check it in the configuration, or this machine's network"
        }
        if let away = upstreams.first(where: { $0.reachability == "offline" }) {
            let waiting = pending.counted("write is", "writes are")
            return pending > 0 ? "Nothing to do: \(waiting) sent when \(away.name) is back" : "Nothing to do: \(away.name) is away"
        }
        if pending > 0 { return "Nothing to do: the outbox is being sent" }
        return "Nothing to do: \(untried.isEmpty ? "everything is delivered" : "no write waits")"
    }

    /// The process behind the answer, as far as it says.
    private var places: [(String, TextTable.Cell)] {
        guard let version else { return [] }
        return [
            ("version", "\(version)"), ("configuration", "\(configFile ?? "none")"), ("state directory", "\(stateDir ?? "–")"),
            ("dashboard", "\(dashboard ?? "–")"),
        ]
    }

    /// The error of a name that no resolver knows (RFC 9209 §2.3.2).
    private static let unknownName = "dns_error"

    /// A reachability in words; one that is unknown here as the server sends it.
    static func words(of reachability: String) -> String { Reachability.State(rawValue: reachability)?.words ?? reachability }

    private static func words(ofError error: String) -> String {
        error == unknownName ? "its name does not resolve (\(error))" : error
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
