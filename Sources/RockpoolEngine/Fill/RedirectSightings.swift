// How often a redirect was seen in the place of a good copy (design §5, *Never let a good copy be overwritten*).
import HTTPTypes
import RockpoolCore
import Synchronization

/// Redirects that stored copies were to be replaced by. One that a portal gives is gone soon; the origin's own comes again.
final class RedirectSightings: Sendable {
    private struct Sighting {
        var status: Int
        var location: String
        var last: Timestamp
        /// Sightings after the first, each a while after the one before.
        var confirmations = 0
    }

    /// URLs that are remembered.
    static let limit = 1024
    /// Sightings closer together than this are one.
    private static let pace = TimeSpan.seconds(1)
    private static let confirmationsNeeded = 2

    private let sightings = Mutex<[String: Sighting]>([:])

    /// Takes in a redirect.
    /// - Returns: whether the same was seen twice since it was first.
    func confirm(_ head: ResponseHead, of url: String, now: Timestamp) -> Bool {
        let location = head.fields[.location] ?? ""
        return sightings.withLock { sightings in
            guard var known = sightings[url], known.status == head.status, known.location == location else {
                if sightings.count >= Self.limit { sightings.removeAll() }
                sightings[url] = Sighting(status: head.status, location: location, last: now)
                return false
            }
            if (now - known.last).magnitude >= Self.pace {
                known.confirmations += 1
                known.last = now
                sightings[url] = known
            }
            return known.confirmations >= Self.confirmationsNeeded
        }
    }
}
