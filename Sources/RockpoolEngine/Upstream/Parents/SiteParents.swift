// The other gateways of the site: which holds a response, which answer, and what this gateway has written (docs/fleet.md#caches).
import Logging
import RockpoolCore
import Synchronization

/// The state of the gateways of the site behind a lock.
package final class SiteParents: Sendable {
    private struct State {
        var health = ParentHealth()
        var writes: OwnWriteTimes
        var taken = 0
    }

    private let active: ActiveConfiguration
    private let logger: Logger
    private let now: @Sendable () -> Timestamp
    private let state: Mutex<State>

    init(active: ActiveConfiguration, logger: Logger, now: @escaping @Sendable () -> Timestamp) {
        (self.active, self.logger, self.now) = (active, logger, now)
        state = Mutex(State(writes: OwnWriteTimes(startedAt: now())))
    }

    /// Each other gateway, and true if it answers.
    package var states: [(node: String, isUp: Bool)] {
        let settings = active.configuration.fleet
        return state.withLock { state in settings.parents.filter { $0 != settings.own }.map { ($0, state.health.isUp($0)) } }
    }

    /// The number of answers that other gateways have given in place of origins.
    package var taken: Int { state.withLock { $0.taken } }

    /// Returns the gateways to ask for a read in order; none if this one is to ask the origin.
    func ways(to head: RequestHead) -> [String] {
        let settings = active.configuration.fleet
        guard settings.parents.count > 1 else { return [] }
        let order = ParentRing(nodes: settings.parents, own: settings.own).order(for: "\(head.origin.url)\n\(head.target)")
        return state.withLock { state in
            order.prefix { $0 != settings.own }.filter { Self.mayCarry($0, to: head.origin) && state.health.isUp($0) }
        }
    }

    /// The greatest age of an answer that has seen every write of this gateway, in seconds.
    func greatestAge(of origin: OriginAddress) -> Int64 { state.withLock { $0.writes.greatestAge(of: origin, now: now()) } }

    /// Records a write that this gateway, or another of its fleet, sends to an origin.
    func noteWrite(to origin: OriginAddress) { state.withLock { $0.writes.note(origin, at: now()) } }

    func noteTaken() { state.withLock { $0.taken += 1 } }

    /// Records that a gateway did not answer.
    func fail(_ node: String, because detail: String) {
        guard state.withLock({ $0.health.fail(node, now: now()) }) else { return }
        logger.warning("another gateway does not answer", metadata: ["gateway": "\(node)", "error": "\(detail)"])
    }

    /// Returns the gateways to be probed now.
    func takeDue() -> [String] { state.withLock { $0.health.takeDue(among: active.configuration.fleet.parents, now: now()) } }

    /// Records the outcome of a probe.
    func probed(_ node: String, isAnswered: Bool) {
        guard state.withLock({ $0.health.probed(node, isAnswered: isAnswered, now: now()) }) else { return }
        logger.notice("another gateway answers again", metadata: ["gateway": "\(node)"])
    }

    /// True if a gateway may be told a request: another machine has another loopback, and nothing for an encrypted origin crosses the
    /// network in plain text.
    private static func mayCarry(_ node: String, to origin: OriginAddress) -> Bool {
        guard let parent = ParentProxy(node) else { return false }
        if OriginAddress.isLoopback(parent.address.host) { return true }
        return !OriginAddress.isLoopback(origin.host) && (origin.scheme == .http || parent.kind == .https)
    }
}
