// SIGHUP: what a running server takes of a changed configuration, and what waits for a restart (contract §1).
import RockpoolCore

/// A configuration that can be put in force without a restart.
struct Reload: Hashable, Sendable {
    var configuration: Configuration
    /// Keys whose new value only a restart puts in force, in their order; the old one stays.
    var waiting: [String]

    /// Listeners, directories and storage limits were taken at the start; categories' shares are the store's. All else is read anew.
    init(from old: Configuration, to new: Configuration) {
        configuration = new
        (configuration.proxy, configuration.admin, configuration.storage) = (old.proxy, old.admin, old.storage)
        configuration.proxy.noProxy = new.proxy.noProxy
        waiting = Self.changed(Configuration.section.show(old), Configuration.section.show(new)).filter(Self.needsRestart)
        let known = Dictionary(old.upstreams.map { ($0.name, $0) }) { first, _ in first }
        for (index, upstream) in configuration.upstreams.enumerated() {
            guard let before = known[upstream.name] else {
                if upstream.gateway != nil { waiting.append("upstreams.\(upstream.name).gateway") }
                continue
            }
            let isMoved = before.gateway != nil && before.origin != upstream.origin
            guard isMoved || before.gateway != upstream.gateway else { continue }
            // A gateway stands for the origin that it was opened for.
            configuration.upstreams[index].origin = before.origin
            configuration.upstreams[index].gateway = before.gateway
            waiting.append("upstreams.\(upstream.name).\(isMoved ? "origin" : "gateway")")
        }
        let kept = Set(new.upstreams.map(\.name))
        waiting += old.upstreams.filter { !kept.contains($0.name) && $0.gateway != nil }.map { "upstreams.\($0.name).gateway" }
    }

    private static func needsRestart(_ path: String) -> Bool {
        let parts = path.split(separator: ".")
        switch parts.first {
        case "proxy": return path != "proxy.no_proxy"
        case "admin", "storage", "network": return true
        // One that is new, or gone, is not yet, or still, the store's.
        case "categories": return parts.count == 2 || ["guarantee", "share", "weight", "offline_window"].contains(parts.last ?? "")
        default: return false
        }
    }

    /// The paths of scalars and lists that differ.
    private static func changed(_ a: Tree?, _ b: Tree?, at path: String = "") -> [String] {
        if a == b { return [] }
        guard case .map(let old)? = a, case .map(let new)? = b else { return [path] }
        let names = old.map(\.name) + new.map(\.name).filter { name in !old.contains { $0.name == name } }
        return names.flatMap { changed(a?[$0], b?[$0], at: path.isEmpty ? $0 : "\(path).\($0)") }
    }
}
