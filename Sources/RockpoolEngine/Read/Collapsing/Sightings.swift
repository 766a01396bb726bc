// Counts responses that would replace a good copy (docs/caching.md#good-copies, *Never let a good copy be overwritten*;
// docs/security-model.md#good-copies).
import HTTPTypes
import RockpoolCore
import Synchronization

/// Redirects, empty responses, 404 and 410 that would replace stored copies. One caused by a portal, a mistake or a single request soon
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
    /// The times between which what is no redirect must be seen a second time; a client that reloads need not wait.
    private static let apart = TimeSpan.minutes(1)
    private static let window = TimeSpan.hours(1)

    private let sightings = Mutex<[String: Sighting]>([:])

    /// Records a response to a request that may store it.
    /// - Parameters:
    ///   - identity: of the partition that would store it; redirects count in all together.
    ///   - copiedAt: When the copy was received or last validated; what is no redirect and was seen before then is contradicted by the copy.
    ///   - isReload: True if the client wants no stored response.
    /// - Returns: True if the same redirect was seen twice after the first time, or the same other response once within the last hour: a
    ///   minute ago or earlier, or by a client that reloads now.
    func confirm(
        _ head: ResponseHead, of url: String, in identity: String, copiedAt: Timestamp, isReload: Bool, now: Timestamp
    ) -> Bool {
        let location = head.fields[.location] ?? ""
        let isRedirect = (300...399).contains(head.status)
        let subject = isRedirect ? url : "\(identity) \(url)"
        return sightings.withLock { sightings in
            guard var known = sightings[subject], known.status == head.status, known.location == location,
                isRedirect || (known.last >= copiedAt && now - known.last <= Self.window)
            else {
                if sightings.count >= Self.limit { sightings.removeAll() }
                sightings[subject] = Sighting(status: head.status, location: location, last: now)
                return false
            }
            if !isRedirect { return isReload || now - known.last >= Self.apart }
            if (now - known.last).magnitude >= Self.pace {
                known.confirmations += 1
                known.last = now
                sightings[subject] = known
            }
            return known.confirmations >= Self.confirmationsNeeded
        }
    }
}
