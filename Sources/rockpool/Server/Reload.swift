// SIGHUP: the parts of a changed configuration that a running server applies, and those that need a restart
// (docs/reference/configuration.md#reload).
import Logging
import RockpoolAdmin
import RockpoolCore
import RockpoolEngine

/// A configuration that can be applied without a restart.
struct Reload: Hashable, Sendable {
    var configuration: Configuration
    /// Keys with a new value that needs a restart, in order; their old values stay in force.
    var waiting: [String]
    /// Keys with a new value that serving uses at once, and the store for new entries after a restart, in order.
    var partly: [String]

    /// Listeners, directories, storage limits and categories' shares are fixed at the start. Everything else is reloaded.
    init(from old: Configuration, to new: Configuration) {
        configuration = new
        (configuration.proxy, configuration.admin, configuration.storage) = (old.proxy, old.admin, old.storage)
        configuration.outbox = old.outbox
        configuration.proxy.noProxy = new.proxy.noProxy
        let changed = Self.changed(from: Configuration.section.show(old), to: Configuration.section.show(new))
        waiting = changed.filter(Self.needsRestart)
        partly = changed.filter { $0.hasPrefix("categories.") && $0.hasSuffix(".offline_window") }
        let known = Dictionary(old.upstreams.map { ($0.name, $0) }) { first, _ in first }
        for (index, upstream) in configuration.upstreams.enumerated() {
            guard let before = known[upstream.name] else {
                if upstream.gateway != nil { waiting.append("upstreams.\(upstream.name).gateway") }
                continue
            }
            let isMoved = before.gateway != nil && before.origin != upstream.origin
            guard isMoved || before.listening != upstream.listening else { continue }
            // A gateway is bound to the origin it was opened for.
            configuration.upstreams[index].origin = before.origin
            let bodies = upstream.gatewaySettings?.rewriteBodies ?? []
            configuration.upstreams[index].gatewaySettings = before.gatewaySettings
            configuration.upstreams[index].gatewaySettings?.rewriteBodies = bodies
            waiting.append("upstreams.\(upstream.name).\(isMoved ? "origin" : "gateway")")
        }
        let kept = Set(new.upstreams.map(\.name))
        waiting += old.upstreams.filter { !kept.contains($0.name) && $0.gateway != nil }.map { "upstreams.\($0.name).gateway" }
    }

    /// Applies a configuration to a running engine and logs what waits for a restart. Throws if one of its files cannot be used.
    static func perform(on engine: Engine, to new: Configuration, logger: Logger) throws -> ReloadOutcome {
        try Server.checkFiles(of: new)
        let reload = Reload(from: engine.configuration, to: new)
        engine.reconfigure(reload.configuration)
        LogOutput.standardError.format = new.log.format
        logger.notice("configuration reloaded")
        for key in reload.waiting { logger.warning("\(key) changes with a restart; until then the old value is used") }
        for key in reload.partly { logger.warning("\(key) applies to serving now; eviction and cleanup change with a restart") }
        return ReloadOutcome(waiting: reload.waiting, partly: reload.partly)
    }

    private static func needsRestart(_ path: String) -> Bool {
        let parts = path.split(separator: ".")
        switch parts.first {
        case "proxy": return path != "proxy.no_proxy"
        case "admin", "network", "outbox", "storage": return true
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

extension Upstream {
    /// The settings of its gateway that are fixed at the start.
    fileprivate var listening: GatewaySettings? {
        var settings = gatewaySettings
        settings?.rewriteBodies = []
        return settings
    }
}
