// `rockpool serve`: the server in the foreground (docs/reference/cli.md#serve).
import ArgumentParser
import Dispatch
import Foundation
import Logging
import RockpoolCore
import RockpoolEngine
import RockpoolNetwork
import RockpoolStore

struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve", abstract: "Run the proxy in the foreground.",
        discussion: .examples(
            "rockpool serve",
            "rockpool serve --upstream https://api.example.com    # without a file",
            after: "Prints `rockpool ready proxy=HOST:PORT admin=HOST:PORT` once it accepts. SIGTERM drains and stops; SIGHUP reloads."))
    @OptionGroup var common: CommonOptions
    @Option(name: .long, help: "The directory of cached responses (storage.cache_dir).", completion: .directory)
    var cacheDir: String?
    @Option(name: .long, help: "HOST:PORT of the forward proxy (proxy.listen); port 0 takes a free one.")
    var proxyListen: String?
    @Option(name: .long, help: "HOST:PORT of the admin API (admin.listen); port 0 takes a free one.")
    var adminListen: String?
    @Option(name: .long, help: "Declares the API at this URL as an upstream with a gateway; may be repeated, and needs no file.")
    var upstream: [String] = []
    @Option(name: .long, help: "trace, debug, info, notice, warning or error; written to stderr.")
    var logLevel: LogLevel = .notice
    @Flag(name: .long, help: "Start with the network mode offline: nothing is sent to any upstream until the mode is changed.")
    var offline = false

    func run() async throws {
        ProcessSetUp.prepare()
        LoggingSystem.bootstrap { LogLines(label: $0, output: .standardError) }
        let logger = Logger(label: "rockpool", level: logLevel.level)
        let loaded = try agreed { try read { LogOutput.standardError.format = $0 } }
        common.say(loaded)
        let environment = ProcessInfo.processInfo.environment
        let server = try await StartFailure.naming {
            do {
                return try await Server.open(
                    loaded, startsOffline: offline, inherited: InheritedSockets(environment), logger: logger,
                    load: {
                        let loaded = try read()
                        common.say(loaded)
                        return loaded
                    })
            } catch let error as DataStoreError {
                guard case .locked = error else { throw error }
                throw CommandFailure(
                    .busy, "\(error). To give it one more API: rockpool add \(upstream.first ?? "https://api.example.com")".inOneLine)
            } catch let failure as ListenFailure where failure.isInUse {
                guard let other = OtherServer(at: loaded.configuration.admin.listen) else { throw failure }
                throw CommandFailure(.failed, "\(failure). \(other.invitation(for: upstream.first))".inOneLine)
            }
        }
        let notice = ServiceNotice(environment)
        let hangUp = ProcessSetUp.onHangUp {
            Task {
                if let notice {
                    await notice.reloading { await reload(server, logger: logger) }
                } else {
                    await reload(server, logger: logger)
                }
            }
        }
        defer { hangUp.cancel() }
        let listeners = server.listeners
        try await StartFailure.naming {
            try await server.run(notice: notice) { admin in
                Display.output.print("rockpool ready proxy=\(listeners.proxy) admin=\(admin)")
                Self.announce(loaded, listeners: listeners, admin: admin)
                logger.info(
                    "started",
                    metadata: [
                        "version": "\(Version.number)", "configuration": "\(loaded.file ?? "none")", "dashboard": "http://\(admin)/",
                    ])
                notice?.send(state: "READY=1\nSTATUS=proxy \(listeners.proxy), dashboard http://\(admin)/")
            }
        }
        logger.info("stopped")
    }

    /// Prints the places that a person needs: the dashboard, the configuration and the gateways.
    private static func announce(_ loaded: LoadedConfiguration, listeners: Listeners, admin: String) {
        var place = admin
        if var dashboard = HostAndPort(admin), dashboard.isWildcard {
            dashboard.host = dashboard.host == "::" ? "::1" : "127.0.0.1"
            place = dashboard.description
        }
        let log = LogOutput.standardError
        log.announce("dashboard http://\(place)/, configuration \(loaded.file ?? "none, the defaults apply")")
        for upstream in loaded.configuration.upstreams {
            guard let gateway = listeners.gateways[upstream.name], let settings = upstream.gatewaySettings else { continue }
            let port = HostAndPort(gateway)?.port ?? 0
            let place = (settings.tls == .none ? "http://" : "https://") + (settings.host.map { "\($0):\(port)" } ?? gateway)
            log.announce("gateway \(place)\(settings.path ?? "/") for \(upstream.origin.url)")
        }
    }

    /// The configuration, after a question on the terminal if it needs the user's consent.
    private func agreed(_ read: () throws -> LoadedConfiguration) throws -> LoadedConfiguration {
        do { return try read() } catch let error as ConfigurationError {
            guard let request = error.consent else { throw error }
            try request.ask(ConsentBook(environment: ProcessInfo.processInfo.environment))
            return try read()
        }
    }

    /// - Parameter take: Called with the format of the log as soon as it is known, also of a configuration with mistakes.
    private func read(take: (LogFormat) -> Void = { _ in }) throws -> LoadedConfiguration {
        var flags: [String: (flag: String, text: String)] = [:]
        flags["storage.cache_dir"] = cacheDir.map { ("--cache-dir", $0) }
        flags["proxy.listen"] = proxyListen.map { ("--proxy-listen", $0) }
        flags["admin.listen"] = adminListen.map { ("--admin-listen", $0) }
        var loaded = try common.readInFolder(flags: flags) { take($0.logFormat) }
        take(loaded.configuration.log.format)
        try FlagUpstreams(urls: upstream).add(to: &loaded.configuration)
        return loaded
    }

    /// Applies the new configuration, or keeps the old one and logs the reason.
    private func reload(_ server: Server, logger: Logger) async {
        do {
            _ = try await server.reload()
        } catch {
            logger.error("configuration not reloaded, the old one stays in force: \((error as? CommandFailure)?.message ?? "\(error)")")
        }
    }
}
