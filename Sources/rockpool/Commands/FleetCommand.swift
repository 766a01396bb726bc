// `rockpool fleet`: the nodes that share an outbox, and the sites that report to a collector (docs/reference/cli.md#fleet).
import ArgumentParser
import Foundation
import Glibc
import Logging
import RockpoolAdmin
import RockpoolCore
import RockpoolEngine
import RockpoolStore

struct FleetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fleet", abstract: "Show the nodes that share an outbox, and collect the reports of sites.",
        discussion: .examples("rockpool fleet nodes", "rockpool fleet outbox", "rockpool fleet status --check"),
        shouldDisplay: false,
        subcommands: [Status.self, Nodes.self, Outbox.self, Conflicts.self, Collect.self, Add.self, Forget.self, Rejoin.self])

    struct Status: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "status", abstract: "Show the nodes of a fleet and the states of its outbox, or the sites of a collector.",
            discussion: .examples(
                "rockpool fleet status", "rockpool fleet status --check",
                after:
                    "At a collector, name its directory by --state-dir. With --check it exits with 1 if a site is silent, a node does not hold its lease, a write is dead, or a conflict "
                    + "waits."))
        @Flag(name: .long, help: "Exit with 1 if something needs a person.") var check = false
        @OptionGroup var options: ReadingOptions

        func run() async throws {
            let reply = try await options.common.client().send(.get("/v1/fleet/status"))
            try options.print(reply, as: FleetStatusReport.self)
            if check, try reply.decoded(as: FleetStatusReport.self).needsPerson { throw ExitCode(ExitStatus.failed.rawValue) }
        }
    }

    struct Forget: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "forget", abstract: "Take a node that is gone off the list of its fleet.",
            discussion: .examples(
                "rockpool fleet forget shop-3",
                after: "Run it at another node. One that starts again is on the list again, with what it has."))
        @Argument(help: "The node\'s name or id; see rockpool fleet nodes.") var node: String
        @OptionGroup var common: CommonOptions

        func run() async throws {
            _ = try await common.client().send(.delete("/v1/fleet/nodes/" + AdminCall.segment(node)))
            Display.output.print("\(node) is forgotten".inOneLine)
        }
    }

    struct Nodes: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "nodes", abstract: "Show every node of the fleet.",
            discussion: .examples("rockpool fleet nodes"))
        @OptionGroup var options: ReadingOptions

        func run() async throws {
            let client = try options.common.client()
            try options.print(try await client.send(.get("/v1/fleet/nodes")), as: FleetReport.self)
        }
    }
}

/// `rockpool fleet collect` and `fleet add`: the collector of the reports of sites (docs/reference/cli.md#fleet-collect).
extension FleetCommand {
    struct Collect: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "collect", abstract: "Collect the reports of sites, in the foreground.",
            discussion: .examples(
                "rockpool fleet collect --state-dir office",
                after:
                    "With --listen 10.0.0.5:7640 --allow 10.0.0.0/8 sites of that network can reach it. Sites are added by "
                    + "`rockpool fleet add`. Prints `rockpool ready collector=HOST:PORT` once it accepts. A site that "
                    + "does not report is written to the log, and told to the program of --alarm as JSON on its standard input."))
        @Option(name: .long, help: "HOST:PORT for the reports; port 0 takes a free one.")
        var listen = "127.0.0.1:7640"
        @Option(name: .long, help: "The directory of the collector.", completion: .directory)
        var stateDir: String
        @Option(name: .long, help: "A network whose sites may connect, beside this machine; may be repeated.")
        var allow: [String] = []
        @Option(name: .long, help: "The time without a report from which a site is silent.")
        var silentAfter = "15m"
        @Option(name: .long, help: "The full path of a program that is run when a site is silent, and when it reports again.")
        var alarm: String?
        @Option(name: .long, help: "trace, debug, info, notice, warning or error; written to stderr.")
        var logLevel: LogLevel = .notice

        func run() async throws {
            ProcessSetUp.prepare()
            LoggingSystem.bootstrap { LogLines(label: $0, output: .standardError) }
            let logger = Logger(label: "rockpool", level: logLevel.level)
            let limit = try silence()
            let networks = try networks()
            let store = try await StartFailure.naming { try SiteStore.open(stateDir) }
            let server = CollectorServer(
                store: store, listen: listen, socketPath: stateDir + "/admin.sock", allowed: networks,
                descriptors: DescriptorGauge(ProcessSetUp.descriptors), silentAfter: limit, logger: logger, now: WallClock.now,
                tell: { [alarm] in await Self.tell($0, program: alarm, logger: logger) })
            try await StartFailure.naming {
                try await withThrowingTaskGroup { group in
                    group.addTask { try await server.run { Display.output.print("rockpool ready collector=\($0)") } }
                    group.addTask { await Interruption.wait() }
                    defer { group.cancelAll() }
                    try await group.next()
                }
            }
        }

        private func silence() throws -> TimeSpan {
            guard let span = try? TimeSpan(parsing: silentAfter), span > .zero else {
                throw CommandFailure(.usage, "--silent-after \(silentAfter) is no duration such as 15m".inOneLine)
            }
            return span
        }

        /// The networks of the sites. An address that others can reach needs one.
        private func networks() throws -> [CIDR] {
            let networks = allow.compactMap { CIDR($0) }
            guard networks.count == allow.count else { throw CommandFailure(.usage, "--allow takes a network such as 10.0.0.0/8") }
            guard let place = HostAndPort(listen), (0...65535).contains(place.port) else {
                throw CommandFailure(.usage, "--listen \(listen) is not HOST:PORT".inOneLine)
            }
            guard place.isLoopback || !networks.isEmpty else {
                throw CommandFailure(.usage, "\(place.host) can be reached from the network; name the networks of the sites by --allow")
            }
            if let alarm, !alarm.hasPrefix("/") { throw CommandFailure(.usage, "--alarm takes the full path of a program") }
            return networks
        }

        private static func tell(_ document: JSONValue, program: String?, logger: Logger) async {
            guard let program else { return }
            do { try await NoticeCommands().run([program], input: document.serialized()) } catch {
                logger.warning("the alarm was not given", metadata: ["error": "\((error as? CommandFailure)?.message ?? "\(error)")"])
            }
        }
    }

    struct Add: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "add", abstract: "Add a site to a collector, and print the site's secret.",
            discussion: .examples(
                "rockpool fleet add shop-1 --state-dir office > shop-1.secret",
                after: "The site keeps the secret in the file of fleet.report.secret_file. To end a site, remove secrets/SITE from the "
                    + "directory of the collector. A running collector needs no restart."))
        @Argument(help: "The name of the site.") var site: String
        @Option(name: .long, help: "The directory of the collector.", completion: .directory) var stateDir: String

        func run() throws {
            do { Display.output.print(try SiteStore.add(site, in: stateDir)) } catch { throw CommandFailure(.failed, "\(error)".inOneLine) }
        }
    }
}

/// `rockpool fleet outbox` and `fleet conflicts`: what waits in a fleet, with the nodes that have to do with it
/// (docs/reference/cli.md#fleet-outbox).
extension FleetCommand {
    struct Outbox: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "outbox", abstract: "List the operations of all nodes; only open ones without --state.",
            discussion: .examples(
                "rockpool fleet outbox", "rockpool fleet outbox --state all --upstream notes",
                after: "TAKEN BY is the node that a client wrote to, SENT BY the one that has the lane of the operation in flight."))
        @OptionGroup var options: ReadingOptions
        @OptionGroup var selection: OutboxSelection

        func run() async throws {
            try await FleetCommand.list(
                .get("/v1/operations", query: selection.query), options: options, as: FleetOutboxReport.self)
        }
    }

    struct Conflicts: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "conflicts", abstract: "List the conflicts of all nodes, the newest first; only open ones without --state.",
            discussion: .examples(
                "rockpool fleet conflicts", after: "A conflict is resolved at any node: rockpool conflicts resolve ID."))
        @OptionGroup var options: ReadingOptions
        @Option(name: .long, help: "open, closed or all.") var state: ConflictsCommand.List.Extent?
        @Option(name: .long, help: "Only conflicts of this upstream.", completion: Completions.upstreams) var upstream: String?

        func run() async throws {
            var query: [String: String] = [:]
            query["state"] = state?.rawValue
            query["upstream"] = upstream
            try await FleetCommand.list(.get("/v1/conflicts", query: query), options: options, as: FleetConflictsReport.self)
        }
    }

    /// Prints a list with the nodes of each item; for people also which nodes keep writes that they have not handed over.
    private static func list<Report: TabularReport>(_ call: AdminCall, options: ReadingOptions, as type: Report.Type) async throws {
        let client = try options.common.client()
        var call = call
        call.query["nodes"] = "true"
        try options.print(try await client.pages(of: call), as: type)
        guard options.format == .table else { return }
        let nodes = try await client.send(.get("/v1/fleet/nodes")).decoded(as: FleetReport.self)
        if nodes.items.isEmpty, let note = nodes.emptyNote { Display.output.print(note) }
        for node in nodes.items where node.held > 0 {
            Display.output.print("\(node.name) keeps \(node.held.counted("write")) not handed over yet".inOneLine)
        }
    }
}

/// `rockpool fleet rejoin`: a node that its fleet refuses comes back (docs/reference/cli.md#fleet-rejoin).
extension FleetCommand {
    struct Rejoin: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "rejoin", abstract: "Let a stopped node that its fleet refuses come back with the open writes that it has.",
            discussion: .examples(
                "rockpool fleet rejoin --state-dir state",
                after: "Its next start reads all of the fleet. What the fleet does not have by then comes back under the same ids."))
        @OptionGroup var options: ReadingOptions

        func run() async throws {
            let storage = try options.common.load().configuration.storage
            guard access(storage.stateDir + "/data.sqlite", F_OK) == 0 else {
                throw CommandFailure(.failed, "there is no outbox in \(storage.stateDir)".inOneLine)
            }
            SQLiteTemporaries.keep(in: storage)
            let logger = Logger(label: "rockpool", level: .error)
            let offer = try await StartFailure.naming {
                try await DataStore.rejoin(storage.stateDir, settings: storage, clock: WallClock.now, logger: logger)
            }
            let report = RejoinReport(offer: offer)
            switch options.format {
            case .json: Display.output.print(String(decoding: try report.encoded, as: UTF8.self))
            case .table:
                Display.output.print(report)
                Display.output.print("\nNext: start the server; then look at rockpool outbox ls --state uncertain")
            }
        }
    }
}
