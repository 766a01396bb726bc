// Counts responses that would replace a good copy (docs/caching.md#good-copies, *Never let a good copy be overwritten*;
// docs/security-model.md#good-copies).
import HTTPTypes
import RockpoolCore
import Synchronization

/// Redirects, 404 and 410 responses that would replace stored copies. One caused by a portal, a mistake or a single request soon
/// disappears; one sent by the origin recurs.
final class Sightings: Sendable {
    private struct Sighting {
        var status: Int
        var location: String
        var last: Timestamp
        /// Number of sightings of a redirect after the first, each at least `pace` after the one before.
        var confirmations = 0
    }

    /// Maximum number of URLs recorded.
    static let limit = 1024
    /// Redirects closer together than this count as one.
    private static let pace = TimeSpan.seconds(1)
    private static let confirmationsNeeded = 2
    /// The time within which a 404 or 410 must be seen a second time.
    private static let window = TimeSpan.hours(1)

    private let sightings = Mutex<[String: Sighting]>([:])

    /// Records a redirect, 404 or 410 in response to a request that may store it.
    /// - Parameter copiedAt: When the copy was received or last validated; a 404 or 410 seen before then is contradicted by the copy.
    /// - Returns: True if the same redirect was seen twice after the first time, or the same error once within the last hour.
    func confirm(_ head: ResponseHead, of url: String, copiedAt: Timestamp, now: Timestamp) -> Bool {
        let location = head.fields[.location] ?? ""
        let isError = head.status >= 400
        return sightings.withLock { sightings in
            guard var known = sightings[url], known.status == head.status, known.location == location,
                !isError || (known.last >= copiedAt && now - known.last <= Self.window)
            else {
                if sightings.count >= Self.limit { sightings.removeAll() }
                sightings[url] = Sighting(status: head.status, location: location, last: now)
                return false
            }
            if isError { return true }
            if (now - known.last).magnitude >= Self.pace {
                known.confirmations += 1
                known.last = now
                sightings[url] = known
            }
            return known.confirmations >= Self.confirmationsNeeded
        }
    }
}
