// `rockpool fleet collect` and `fleet add`: the collector of the reports of sites (docs/reference/cli.md#fleet-collect).
import ArgumentParser
import Foundation
import Logging
import RockpoolAdmin
import RockpoolCore
import RockpoolEngine
import RockpoolStore

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
