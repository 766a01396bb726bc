// SIGHUP: the parts of a changed configuration that a running server applies, and those that need a restart
// (docs/reference/configuration.md#reload).
import Logging
import RockpoolAdmin
import RockpoolCore
import RockpoolEngine
import RockpoolNetwork
import RockpoolStore
import Synchronization

/// A configuration that can be applied without a restart.
struct Reload: Hashable, Sendable {
    var configuration: Configuration
    /// Keys with a new value that needs a restart, in order; their old values stay in force.
    var waiting: [String]
    /// Keys with a new value that serving uses at once, and the store for new entries after a restart, in order.
    var partly: [String]

    /// Addresses, directories and categories' shares are fixed at the start. Everything else is reloaded.
    init(from old: Configuration, to new: Configuration) {
        configuration = new
        (configuration.proxy, configuration.admin, configuration.outbox) = (old.proxy, old.admin, old.outbox)
        (configuration.proxy.noProxy, configuration.proxy.timeouts) = (new.proxy.noProxy, new.proxy.timeouts)
        configuration.proxy.limits = new.proxy.limits
        configuration.storage = old.storage.taking(limitsOf: new.storage)
        let changed = Self.changed(from: Configuration.section.show(old), to: Configuration.section.show(new))
        waiting = changed.filter(Self.needsRestart)
        partly = changed.filter { $0.hasPrefix("categories.") && $0.hasSuffix(".offline_window") }
    }

    /// Applies a configuration to a running server and logs what waits for a restart. Throws if one of its files cannot be used, or a
    /// gateway cannot be opened; then nothing is changed.
    static func perform(
        on engine: Engine, listeners: Listeners, contexts: LeafContexts, to new: Configuration, logger: Logger
    ) async throws -> ReloadOutcome {
        try Server.checkFiles(of: new)
        let reload = Reload(from: engine.configuration, to: new)
        if reload.configuration.needsAuthority { try contexts.prepare() }
        let gateways = try await listeners.prepare(for: reload.configuration.upstreams)
        engine.reconfigure(reload.configuration)
        await listeners.follow(gateways)
        listeners.take(reload.configuration.proxy)
        engine.data.take(limitsOf: reload.configuration.storage)
        engine.data.take(AgreedSettings(of: reload.configuration))
        await engine.cache.take(limitsOf: reload.configuration.storage)
        LogOutput.standardError.format = new.log.format
        logger.notice("configuration reloaded")
        for key in reload.waiting { logger.warning("\(key) changes with a restart; until then the old value is used") }
        for key in reload.partly { logger.warning("\(key) applies to serving now; eviction and cleanup change with a restart") }
        return ReloadOutcome(waiting: reload.waiting, partly: reload.partly)
    }

    private static func needsRestart(_ path: String) -> Bool {
        let parts = path.split(separator: ".")
        switch parts.first {
        case "proxy": return !["no_proxy", "timeouts", "limits"].contains(parts[1]) || path == "proxy.limits.exchanges"
        case "storage": return ["cache_dir", "state_dir", "memory_limit", "encrypt", "key_file"].contains(parts[1])
        case "admin", "network", "outbox": return true
        // The store applies an added or removed category only after a restart.
        case "categories": return parts.count == 2 || ["guarantee", "share", "weight"].contains(parts.last ?? "")
        default: return false
        }
    }

    /// The paths of scalars and lists that differ.
    private static func changed(from a: ConfigDocument?, to b: ConfigDocument?, at path: String = "") -> [String] {
        if a == b { return [] }
        guard case .map(let old)? = a, case .map(let new)? = b else { return [path] }
        let names = old.map(\.name) + new.map(\.name).filter { name in !old.contains { $0.name == name } }
        return names.flatMap { changed(from: a?[$0], to: b?[$0], at: path.isEmpty ? $0 : "\(path).\($0)") }
    }
}

/// Reads the configuration of a running server again and applies it, one time after the other.
struct Reloads: Sendable {
    /// Where the values in force come from.
    let places: ConfigurationPlaces
    let record = ReloadRecord(now: WallClock.now())
    private let turns = ReloadTurns()
    private let engine: Engine
    private let listeners: Listeners
    private let contexts: LeafContexts
    private let logger: Logger
    private let load: @Sendable () throws -> LoadedConfiguration

    init(
        of engine: Engine, listeners: Listeners, contexts: LeafContexts, places: ConfigurationPlaces, logger: Logger,
        load: @escaping @Sendable () throws -> LoadedConfiguration
    ) {
        (self.engine, self.listeners, self.contexts, self.places) = (engine, listeners, contexts, places)
        (self.logger, self.load) = (logger, load)
    }

    /// Reloads once. Throws the reason why the old configuration stays in force.
    func next() async throws -> ReloadOutcome {
        try await turns.take {
            try await record.during(now: WallClock.now()) {
                try await places.follow(load()) {
                    try await Reload.perform(on: engine, listeners: listeners, contexts: contexts, to: $0, logger: logger)
                }
            }
        }
    }
}

/// When the configuration was last read, and whether it was good (docs/reference/metrics.md#server).
final class ReloadRecord: Sendable {
    private let state: Mutex<(at: Timestamp, isGood: Bool)>

    /// - Parameter now: the time of the start.
    init(now: Timestamp) { state = Mutex((now, true)) }

    var last: (at: Timestamp, isGood: Bool) { state.withLock { $0 } }

    /// Runs a reload and records its outcome. Rethrows its error.
    func during<Outcome>(now: Timestamp, _ reload: () async throws -> Outcome) async rethrows -> Outcome {
        do {
            let outcome = try await reload()
            state.withLock { $0 = (now, true) }
            return outcome
        } catch {
            // The time stays that of the configuration in force.
            state.withLock { $0.isGood = false }
            throw error
        }
    }
}

/// Lets one reload follow the other.
actor ReloadTurns {
    private var last: Task<Void, Never>?

    func take<Outcome: Sendable>(_ reload: @escaping @Sendable () async throws -> Outcome) async throws -> Outcome {
        let before = last
        let task = Task {
            await before?.value
            return try await reload()
        }
        last = Task { _ = await task.result }
        return try await task.value
    }
}
