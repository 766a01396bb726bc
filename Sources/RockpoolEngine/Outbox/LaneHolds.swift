// Lanes in which an earlier attempt may still run: a live write must not go ahead of it either (docs/outbox.md#lane-holds, the zombie
// attempt).
import RockpoolCore
import Synchronization

/// Until when nothing of a lane is sent.
final class LaneHolds: Sendable {
    private struct Lane: Hashable {
        var upstream: String
        var name: String
    }

    /// Lanes from which on those whose time has long passed are forgotten.
    private static let pruneAt = 10_000

    private let lanes = Mutex<[Lane: LaneHold]>([:])

    /// Holds a lane; never for less than it is held already.
    /// - Parameter isProved: whether the attempt was that of a principal who has proved itself; any other's holds back no such principal.
    func hold(_ upstream: String, _ lane: String, byProved isProved: Bool, until moment: Timestamp, now: Timestamp) {
        lanes.withLock { lanes in
            if lanes.count >= Self.pruneAt { lanes = lanes.filter { $0.value.moment(forProved: false) > now } }
            lanes[Lane(upstream: upstream, name: lane), default: LaneHold()].extend(until: moment, byProved: isProved)
        }
    }

    func holds(_ upstream: String, _ lane: String, forProved isProved: Bool, now: Timestamp) -> Bool {
        lanes.withLock { lanes in
            let lane = Lane(upstream: upstream, name: lane)
            guard let hold = lanes[lane] else { return false }
            // Those who are not proved wait for everything that anybody waits for.
            if hold.moment(forProved: false) <= now { lanes[lane] = nil }
            return hold.moment(forProved: isProved) > now
        }
    }
}
