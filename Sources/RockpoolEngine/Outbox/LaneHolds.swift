// Lanes in which an earlier attempt may still run: a live write must not go ahead of it either (outbox.md §2.4, the zombie attempt).
import RockpoolCore
import Synchronization

/// Until when nothing of a lane is sent.
final class LaneHolds: Sendable {
    private struct Lane: Hashable {
        var upstream: String
        var name: String
        /// Whether it holds everybody, or only those who have proved no identity.
        var holdsProved: Bool
    }

    /// Lanes from which on those whose time has long passed are forgotten.
    private static let pruneAt = 10_000

    private let moments = Mutex<[Lane: Timestamp]>([:])

    /// Holds a lane; never for less than it is held already, since each of the attempts may still run.
    /// - Parameter isProved: whether the attempt was that of a principal who has proved itself; any other's holds back no such principal.
    func hold(_ upstream: String, _ lane: String, byProved isProved: Bool, until moment: Timestamp, now: Timestamp) {
        moments.withLock { moments in
            if moments.count >= Self.pruneAt { moments = moments.filter { $0.value > now } }
            let lane = Lane(upstream: upstream, name: lane, holdsProved: isProved)
            moments[lane] = max(moment, moments[lane] ?? moment)
        }
    }

    func holds(_ upstream: String, _ lane: String, forProved isProved: Bool, now: Timestamp) -> Bool {
        moments.withLock { moments in
            (isProved ? [true] : [true, false]).contains { holdsProved in
                let lane = Lane(upstream: upstream, name: lane, holdsProved: holdsProved)
                guard let moment = moments[lane] else { return false }
                if moment <= now { moments[lane] = nil }
                return moment > now
            }
        }
    }
}
