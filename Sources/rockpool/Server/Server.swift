// The composition root: makes every part once, in order, and shuts them down in reverse (docs/architecture.md#targets).
import Foundation
import Logging
import RockpoolAdmin
import RockpoolCore
import RockpoolEngine
import RockpoolNetwork
import RockpoolStore
import ServiceLifecycle
import UnixSignals

/// A complete Rockpool: stores, engine, listeners, jobs, admin.
struct Server: Sendable {
    let engine: Engine
    let listeners: Listeners
    let cleaner: Cleaner
    /// Reads the configuration again and applies it. Throws the reason why the old one stays in force.
    let reload: @Sendable () async throws -> ReloadOutcome
    private let replayer: Replayer
    /// Nil without a fleet.
    private let feed: FleetFeed?
    private let prober: Prober
    private let puller: Puller
    private let resolver: ConflictResolutionService
    private let announcer: Announcer
    private let reporter: SiteReporter
    private let metered: MeteredWatch
    private let origin: LoopOrigin
    private let admin: AdminServer
    private let adminAddress: AsyncStream<HostAndPort>
    private let logger: Logger

    /// Opens the stores and binds the client-facing listeners. `load` reads the configuration again for a reload.
    ///
    /// - Throws: the reason why it cannot start, as a one-line description; `StartFailure` maps errors to exit codes.
    static func open(
        _ loaded: LoadedConfiguration, startsOffline: Bool = false, inherited: InheritedSockets = InheritedSockets(), logger: Logger,
        load: @escaping @Sendable () throws -> LoadedConfiguration
    ) async throws -> Server {
        FreedMemory.keepWorkingMemory()
        let configuration = loaded.configuration
        let storage = configuration.storage
        let descriptors = try shareDescriptors(within: configuration.proxy.limits, logger: logger)
        try checkFiles(of: configuration)
        SQLiteTemporaries.keep(in: storage)
        let authority = AuthorityFiles(stateDirectory: storage.stateDir)
        do { try authority.checkPrivacy() } catch { throw CommandFailure(.configuration, "\(error)") }
        let data = try DataStore.open(
            directory: storage.stateDir, settings: storage, outbox: configuration.outbox, clock: WallClock.now, logger: logger)
        let token = try data.adminToken()
        let cache = try CacheStore.open(
            directory: storage.cacheDir, settings: storage, categories: configuration.categories, seal: data.seal, clock: WallClock.now,
            ticks: data.ticks, logger: logger)
        try data.keepRun()
        let (addresses, ownPorts) = (AddressPolicy(deny: configuration.proxy.denyAddresses.compactMap { CIDR($0) }), OwnPorts())
        let curl = try CurlOrigin(
            addresses: addresses, ownPorts: ownPorts, connections: descriptors.budget.upstreamConnections, logger: logger)
        let origin = LoopOrigin(curl: curl, addresses: addresses, ownPorts: ownPorts, now: WallClock.now)
        let viaName = "rockpool-" + String(UInt32.random(in: .min ... .max), radix: 16)
        let engine = Engine(
            configuration: configuration, cache: cache, data: data, origin: origin, viaName: viaName, logger: logger, now: WallClock.now,
            accessLog: AccessLog().write, document: DocumentText.described)
        engine.traces.setVersion(Version.number)
        await engine.applyQuotas()
        engine.upstreams.restoreSwitch(startsOffline: startsOffline)
        await engine.learning.takeUp()
        let feed = FleetFeed(engine: engine)
        data.take(AgreedSettings(of: configuration))
        try await engine.notifier.recallWrites()
        await RecalledDeliveries(engine: engine).project()
        let contexts = LeafContexts(files: authority, now: WallClock.now)
        if configuration.needsAuthority {
            do { try contexts.prepare() } catch { throw CommandFailure(.configuration, "\(error)") }
        }
        let listeners = try await Listeners.open(
            configuration: configuration, engine: engine, contexts: contexts, origin: origin, addresses: addresses, ownPorts: ownPorts,
            viaName: viaName, inherited: inherited, descriptors: descriptors, logger: logger)
        let replayer = Replayer(engine: engine)
        let cleaner = Cleaner(engine: engine)
        let puller = Puller(engine: engine)
        let resolver = ConflictResolutionService(engine: engine, puller: puller)
        let announcer = Announcer(engine: engine, local: NoticeCommands())
        let reloads = Reloads(
            of: engine, listeners: listeners, contexts: contexts, places: ConfigurationPlaces(loaded.places), logger: logger, load: load)
        let facts = Self.facts(of: loaded, reloads: reloads, authority: authority, engine: engine, listeners: listeners)
        let (adminAddress, bound) = AsyncStream.makeStream(of: HostAndPort.self)
        let admin = AdminServer(
            engine: engine, cleaner: cleaner, puller: puller, notices: announcer.sender, settings: configuration.admin,
            socketPath: configuration.socketPath, token: token, startedAt: WallClock.now(),
            doors: ClientEndpoints(proxy: listeners.proxy, gateways: { listeners.gateways }, certificatePath: authority.certificatePath),
            facts: facts, timeouts: configuration.proxy.timeouts, allowed: configuration.proxy.allowedNetworks, descriptors: descriptors,
            logger: logger,
            onBound: { address in
                ownPorts.insert(address.port)
                bound.yield(address)
            })
        engine.connectReachability(logger: logger)
        return Server(
            engine: engine, listeners: listeners, cleaner: cleaner, reload: reloads.next, replayer: replayer, feed: feed,
            prober: Prober(engine: engine, replayer: replayer), puller: puller, resolver: resolver, announcer: announcer,
            reporter: SiteReporter(engine: engine, version: Version.number),
            metered: MeteredWatch(budgets: engine.upstreams.budgets, active: engine.active, ask: NetworkManager.isMetered), origin: origin,
            admin: admin, adminAddress: adminAddress, logger: logger)
    }

    /// What the admin API shows of the process.
    private static func facts(
        of loaded: LoadedConfiguration, reloads: Reloads, authority: AuthorityFiles, engine: Engine, listeners: Listeners
    ) -> ServerFacts {
        let storage = loaded.configuration.storage
        var facts = ServerFacts()
        facts.version = Version.number
        facts.documentation = DocumentationPages.installed
        facts.configFile = loaded.file
        (facts.stateDirectory, facts.cacheDirectory, facts.proxy) = (storage.stateDir, storage.cacheDir, listeners.proxy)
        facts.configuration = { Configuration.section.show(engine.configuration).json() + "\n" }
        facts.values = { reloads.places.values(of: Configuration.section.show(engine.configuration)) }
        facts.connections = { (listeners.connections.count, listeners.tunnelCount) }
        facts.authorityExpiry = { (try? authority.load())?.notAfter }
        (facts.lastReload, facts.reload) = ({ reloads.record.last }, reloads.next)
        facts.declare = {
            [file = loaded.file ?? Directories.userFile(environment: ProcessInfo.processInfo.environment)] declaration
                throws(UpstreamDeclaration.Refusal) in
            try await declaration.added(to: file, of: engine, listeners: listeners, reload: reloads.next)
        }
        return facts
    }

    /// Distributes the descriptors that the system allows. Throws `CommandFailure` if there are too few to serve.
    private static func shareDescriptors(within limits: ClientLimits, logger: Logger) throws -> DescriptorGauge {
        let budget = ProcessSetUp.descriptors
        guard budget.limit >= DescriptorBudget.least else {
            throw CommandFailure(
                .failed, "only \(budget.limit) files may be open at once, at least \(DescriptorBudget.least) are needed; raise ulimit -n")
        }
        if budget.clientConnections < limits.connections {
            let (held, wanted) = (budget.clientConnections, limits.connections)
            logger.notice(
                "at most \(held.counted("connection")) at once, not \(wanted): only \(budget.limit) files may be open (ulimit -n)")
        }
        return DescriptorGauge(budget)
    }

    /// Throws `CommandFailure` if a configured file cannot be read or is not private as required.
    static func checkFiles(of configuration: Configuration) throws {
        if let file = configuration.proxy.auth?.file {
            guard access(file, F_OK) == 0 else {
                throw CommandFailure(
                    .configuration, "proxy.auth.file: \(file) does not exist; make it with: rockpool proxy-password NAME".inOneLine)
            }
            do { _ = try PasswordBook.read(file) } catch { throw CommandFailure(.configuration, "proxy.auth.file: \(error)".inOneLine) }
        }
        for file in configuration.upstreams.flatMap({ [$0.tls.caFile, $0.tls.clientCert, $0.tls.clientKey] }).compactMap({ $0 }) {
            guard access(file, R_OK) == 0 else { throw CommandFailure(.configuration, "\(file), named under tls, cannot be read") }
        }
        let secrets = configuration.notify.compactMap(\.webhook?.secretFile).map { ("notify.webhook.secret_file", $0) }
        let others = [
            ("callbacks.secret_file", configuration.callbacks.secretFile),
            ("fleet.report.secret_file", configuration.fleet.report?.secretFile),
        ]
        for (key, file) in secrets + others.compactMap({ key, file in file.map { (key, $0) } }) {
            do { _ = try WebhookSignature(secretFile: file) } catch { throw CommandFailure(.configuration, "\(key): \(error)".inOneLine) }
        }
        for file in configuration.upstreams.compactMap({ $0.sign?.sigV4.secretFile }) {
            do { _ = try PrivateFile.text(file) } catch { throw CommandFailure(.configuration, "sign.sigv4.secret_file: \(error)") }
        }
        let parents = configuration.upstreams.compactMap(\.parent) + configuration.via.map(\.parent)
        for file in parents.flatMap(\.all).compactMap(\.passwordFile) {
            do { _ = try PrivateFile.text(file) } catch { throw CommandFailure(.configuration, "via.password_file: \(error)") }
        }
        for file in configuration.upstreams.compactMap({ $0.refresh?.tokenFile }) {
            do { _ = try PrivateFile.text(file) } catch { throw CommandFailure(.configuration, "refresh.token_file: \(error)") }
        }
    }

    /// Serves until a termination signal, then drains.
    ///
    /// - Parameters:
    /// - notice: the service manager's socket, if there is one.
    /// - onReady: called with the admin API's `host:port` once every listener accepts.
    func run(
        signals: [UnixSignal] = [.sigterm, .sigint], notice: ServiceNotice? = nil, onReady: @escaping @Sendable (String) async -> Void
    ) async throws {
        let addresses = adminAddress
        let ready = Task {
            for await address in addresses { return await onReady(address.description) }
        }
        defer { ready.cancel() }
        let watch: [any Service] = notice.map { [ServiceWatch(notice: $0, data: engine.data)] } ?? []
        let services: [any Service] =
            [
                Stores(engine: engine, origin: origin), admin, cleaner, prober, puller, resolver, announcer, reporter,
                metered, engine.traces, DescriptionReader(engine: engine), replayer,
                ListenerService(listeners: listeners),
            ] + watch + [feed].compactMap(\.self)
        var quiet = logger
        quiet.logLevel = .error
        let group = ServiceGroup(
            configuration: .init(services: services, gracefulShutdownSignals: signals, logger: quiet))
        try await group.run()
    }
}

/// The stores, closed last.
private struct Stores: Service {
    let engine: Engine
    let origin: LoopOrigin

    func run() async throws {
        try? await gracefulShutdown()
        origin.close()
        engine.keepSight()
        await engine.cache.close()
        await engine.data.close()
    }
}

/// The client-facing listeners, drained first.
private struct ListenerService: Service {
    private static let grace = Duration.seconds(5)
    let listeners: Listeners

    func run() async throws {
        try? await gracefulShutdown()
        await listeners.drain(within: Self.grace)
    }
}

/// `PUT /v1/upstreams/{name}`: the server adds an upstream to its own configuration file (docs/reference/admin-api.md#server).
extension UpstreamDeclaration {
    /// Adds the upstream to a file, and has the server read it again. Where that fails, the file is as it was.
    func added(
        to file: String, of engine: Engine, listeners: Listeners, reload: @Sendable () async throws -> ReloadOutcome
    ) async throws(Refusal) -> Outcome {
        let known = engine.configuration
        let (edit, text): (ConfigurationEdit, String)
        do {
            let place = try APIAddress(origin).exact().place
            if let same = known.upstreams.first(where: { $0.name == name || $0.place == place }) {
                guard same.name == name, same.place == place else {
                    throw Refusal.notPossible("\(same.name) is declared for \(same.place)")
                }
                return Outcome(isKnown: true, gateway: listeners.gateways[name])
            }
            let declared = try APIAddress(origin).exact(besides: known, name: name)
            let address = try gateway ?? LocalPort.freeAddress(from: declared.gateway)
            edit = try ConfigurationEdit(file: file)
            let proposed = ProposedConfiguration(place: declared.place, name: name, api: ProposedAPI(), gateway: address)
            text = try edit.adding(proposed.entry)
        } catch let refusal as Refusal {
            throw refusal
        } catch let error as ConfigurationError {
            throw .invalid(error.problems.map(\.message).joined(separator: "; "))
        } catch { throw .invalid((error as? CommandFailure)?.message ?? "\(error)") }
        do { try edit.write(text) } catch { throw .notPossible("\(error.message); with its rights: sudo rockpool add \(origin)") }
        do { _ = try await reload() } catch {
            try? edit.write(edit.text)
            throw .notPossible("nothing is changed: \((error as? CommandFailure)?.message ?? "\(error)")")
        }
        return Outcome(isKnown: false, gateway: listeners.gateways[name])
    }
}

/// Converts an error that prevents the start into a one-line message and an exit status.
enum StartFailure {
    static func naming<Result>(_ body: () async throws -> Result) async throws -> Result {
        do {
            return try await body()
        } catch {
            throw named(error)
        }
    }

    private static func named(_ error: any Error) -> any Error {
        if case DataStoreError.locked = error { return CommandFailure(.busy, "\(error)") }
        if error is CacheInUse { return CommandFailure(.busy, "\(error)") }
        return error is ConfigurationError || error is CommandFailure ? error : CommandFailure(.failed, "\(error)")
    }
}
