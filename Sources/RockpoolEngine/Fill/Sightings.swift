// How often an answer was seen that would replace a good copy (docs/caching.md#good-copies, *Never let a good copy be overwritten*;
// docs/security-model.md#good-copies).
import HTTPTypes
import RockpoolCore
import Synchronization

/// Redirects, 404 and 410 that stored copies were to be replaced by. One that a portal, a slip or a single request brings about is gone
/// soon; the origin's own comes again.
final class Sightings: Sendable {
    private struct Sighting {
        var status: Int
        var location: String
        var last: Timestamp
        /// Sightings of a redirect after the first, each a while after the one before.
        var confirmations = 0
    }

    /// URLs that are remembered.
    static let limit = 1024
    /// Redirects seen closer together than this are one.
    private static let pace = TimeSpan.seconds(1)
    private static let confirmationsNeeded = 2
    /// How long a 404 or 410 waits for the second one.
    private static let window = TimeSpan.hours(1)

    private let sightings = Mutex<[String: Sighting]>([:])

    /// Takes in a redirect, a 404 or a 410 in answer to a request that may store it.
    /// - Parameter copiedAt: when the copy was received or last validated. A 404 or 410 seen before then was contradicted by it.
    /// - Returns: whether the same redirect was seen twice since it was first, or the same error once within the last hour.
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
