// Several parent proxies for the same hosts: their turns, and which of them answer (docs/reference/configuration.md#several-parents).
import Logging
package import RockpoolCore
import Synchronization

/// The state of the parent proxies behind a lock. One that stands alone is always tried.
package final class ParentProxies: Sendable {
    private struct State {
        var health = ParentHealth()
        var turns = ParentTurns()
    }

    private let active: ActiveConfiguration
    private let logger: Logger
    private let now: @Sendable () -> Timestamp
    private let state = Mutex(State())

    init(active: ActiveConfiguration, logger: Logger, now: @escaping @Sendable () -> Timestamp) {
        (self.active, self.logger, self.now) = (active, logger, now)
    }

    /// Returns the parents through which an origin is reached, in the order in which this request tries them; none to reach it directly.
    package func ways(to origin: OriginAddress, of upstream: Upstream?) -> [ParentSettings] {
        guard let settings = active.configuration.parent(for: origin, of: upstream) else { return [] }
        if settings.others.isEmpty { return [settings] }
        return state.withLock { state in
            let health = state.health
            return state.turns.next(of: settings, isUp: health.isUp)
        }
    }

    /// Records a failure of the way through a parent.
    /// - Returns: True if another parent may be tried.
    package func fail(_ parent: ParentSettings, after failure: TransferFailure) -> Bool {
        if failure.isOfParent, nodes.contains(parent.url), state.withLock({ $0.health.fail(parent.url, now: now()) }) {
            logger.warning("a parent proxy does not answer", metadata: ["parent": "\(parent.url)", "error": "\(failure.proxyErrorName)"])
        }
        return failure.mayTakeAnotherParent
    }

    /// The parents of upstreams, by their names, and of rules, by their hosts.
    private var rules: [(of: String, settings: ParentSettings)] {
        let configuration = active.configuration
        let own = configuration.upstreams.compactMap { upstream in upstream.parent.map { (of: upstream.name, settings: $0) } }
        return own + configuration.via.filter { $0.parent.url != ParentRule.direct }.map { ($0.hosts.joined(separator: ", "), $0.parent) }
    }

    private var nodes: [String] { rules.flatMap(\.settings.all).map(\.url) }

    /// How each parent of the configuration stands.
    package var standings: [ParentStanding] {
        let health = state.withLock(\.health)
        return rules.flatMap { ParentStanding.all(of: $0.of, $0.settings, health: health) }
    }

    /// Returns the parents to be probed now.
    func takeDue() -> [String] {
        if state.withLock({ $0.health.isWell }) { return [] }
        let nodes = nodes
        return state.withLock { $0.health.takeDue(among: nodes, now: now()) }
    }

    /// Records the outcome of a probe.
    func probed(_ parent: String, isAnswered: Bool) {
        guard state.withLock({ $0.health.probed(parent, isAnswered: isAnswered, now: now()) }) else { return }
        logger.notice("a parent proxy answers again", metadata: ["parent": "\(parent)"])
    }
}
