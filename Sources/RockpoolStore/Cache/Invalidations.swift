// What was invalidated lately, so that an answer already on its way does not bring the old state back as fresh (RFC 9111 §4.4).
import OrderedCollections
import RockpoolCore
import Synchronization

/// URLs of the latest invalidations. Bounded: what leaves is far older than any request under way.
final class Invalidations: Sendable {
    private static let limit = 4096

    private let moments = Mutex<OrderedDictionary<String, Timestamp>>([:])

    func note(_ urls: [String], at moment: Timestamp) {
        moments.withLock { moments in
            for url in urls {
                moments[url] = nil
                moments[url] = moment
            }
            if moments.count > Self.limit { moments.removeFirst(moments.count - Self.limit) }
        }
    }

    /// Whether `url` was invalidated after a request for it had been sent.
    func happened(to url: String, since sent: Timestamp) -> Bool { moments.withLock { $0[url].map { $0 > sent } ?? false } }
}
