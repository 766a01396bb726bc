// Lanes in which an earlier attempt may still run: a live write must not overtake it either (docs/outbox.md#lane-holds, the zombie
// attempt).
import RockpoolCore
import Synchronization

/// The end of the hold of each lane.
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
