// The pauses of upstreams and of their routes, as the replayer keeps them (docs/outbox.md#gate, docs/outbox.md#mass-refusal).
import RockpoolCore
import Synchronization

/// The end of the pause that each upstream demands by 429 or 503, and the routes that pause after mass refusals.
final class UpstreamPauses: Sendable {
    private struct State {
        var ends: [String: Timestamp] = [:]
        var routes: [String: [RoutePause]] = [:]
        /// Pauses that no notice has named yet.
        var unnamed: [PausedRoute] = []

        var pausedRoutes: [PausedRoute] {
            routes.sorted { $0.key < $1.key }.flatMap { upstream, pauses in
                pauses.sorted { $0.route < $1.route }.map { PausedRoute(upstream: upstream, pause: $0) }
            }
        }
    }

    /// The pause of a route of one upstream.
    struct PausedRoute: Hashable, Sendable {
        var upstream: String
        var pause: RoutePause

        func isSame(as other: PausedRoute) -> Bool {
            upstream == other.upstream && pause.route == other.pause.route && pause.since == other.pause.since
        }
    }

    private static let unnamedLimit = 64

    private let state = Mutex(State())

    /// Replaces all of them by the replayer's.
    /// - Returns: the pauses of routes that have begun.
    func replace(by machine: ReplayMachine) -> [PausedRoute] {
        let (ends, routes) = (machine.pauses, machine.routePauses)
        return state.withLock { state in
            let known = state.pausedRoutes
            (state.ends, state.routes) = (ends, routes)
            let begun = state.pausedRoutes.filter { new in !known.contains { $0.isSame(as: new) } }
            state.unnamed = Array((state.unnamed + begun).suffix(Self.unnamedLimit))
            return begun
        }
    }

    /// Returns the paused routes, and those whose pause has begun and ended since the last call.
    func takePausedRoutes() -> [PausedRoute] {
        state.withLock { state in
            let current = state.pausedRoutes
            defer { state.unnamed = [] }
            return current + state.unnamed.filter { old in !current.contains { $0.isSame(as: old) } }
        }
    }

    func end(_ upstream: String) { state.withLock { $0.ends[upstream] = nil } }

    /// Returns the pauses of upstreams that have not ended.
    func current(now: Timestamp) -> [String: Timestamp] { state.withLock { $0.ends.filter { $0.value > now } } }

    /// The paused routes, by upstream.
    var routes: [String: [RoutePause]] { state.withLock(\.routes) }

    /// Returns the pause of the route to which an operation belongs; nil without one.
    func pause(of summary: OperationSummary) -> RoutePause? {
        state.withLock { $0.routes[summary.upstream]?.first { $0.route == summary.watchedRoute && $0.concerns(summary.client) } }
    }
}

/// Lanes in which an earlier attempt may still run: a live write must not overtake it either (docs/outbox.md#lane-holds, the zombie
/// attempt).
final class LaneHolds: Sendable {
    private struct Lane: Hashable {
        var upstream: String
        var name: String
    }

    /// The number of lanes at which expired holds are removed.
    private static let pruneAt = 10_000

    private let lanes = Mutex<[Lane: LaneHold]>([:])

    /// Extends the hold of a lane; never shortens it.
    /// - Parameter isProved: true if the attempt's principal is proved. The attempt of an unproved principal does not hold back proved
    ///   ones.
    func hold(upstream: String, lane: String, byProved isProved: Bool, until moment: Timestamp, now: Timestamp) {
        lanes.withLock { lanes in
            if lanes.count >= Self.pruneAt { lanes = lanes.filter { $0.value.moment(forProved: false) > now } }
            lanes[Lane(upstream: upstream, name: lane), default: LaneHold()].extend(until: moment, byProved: isProved)
        }
    }

    func holds(upstream: String, lane: String, forProved isProved: Bool, now: Timestamp) -> Bool {
        end(upstream: upstream, lane: lane, forProved: isProved, now: now) != nil
    }

    /// Returns until when a lane is held; nil if it is not.
    func end(upstream: String, lane: String, forProved isProved: Bool, now: Timestamp) -> Timestamp? {
        lanes.withLock { lanes in
            let lane = Lane(upstream: upstream, name: lane)
            guard let hold = lanes[lane] else { return nil }
            // Every hold applies to unproved principals, so their moment is the latest.
            if hold.moment(forProved: false) <= now { lanes[lane] = nil }
            let moment = hold.moment(forProved: isProved)
            return moment > now ? moment : nil
        }
    }
}
