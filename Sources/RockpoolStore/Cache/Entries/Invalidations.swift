// Recent invalidations, so that a response in flight does not bring the old state back as fresh (RFC 9111 §4.4).
import OrderedCollections
import RockpoolCore
import Synchronization

/// The latest invalidated names. Bounded: a name dropped by the limit is far older than any request in flight.
final class Invalidations: Sendable {
    /// The target of an invalidation.
    enum Name: Hashable, Sendable {
        case url(String)
        /// An absolute URL and the same path with any query, changed by an own write.
        case path(String)
        /// A cache group of an origin, given as its URL (RFC 9875).
        case group(String, origin: String)
        /// The partition of an identity that was forgotten.
        case identity(String)
        /// Everything whose URL begins with this prefix.
        case tree(String)
    }

    private static let nameCount = 4096

    private let moments = Mutex<OrderedDictionary<Name, Timestamp>>([:])

    /// True if nothing was invalidated lately.
    var isEmpty: Bool { moments.withLock(\.isEmpty) }

    func note(_ names: [Name], at moment: Timestamp) {
        moments.withLock { moments in
            for name in names {
                moments[name] = nil
                moments[name] = moment
            }
            if moments.count > Self.nameCount { moments.removeFirst(moments.count - Self.nameCount) }
        }
    }

    /// Returns the time of the last own write to the path after a request had been sent; nil without one.
    func ownWrite(to path: String, since sent: Timestamp) -> Timestamp? {
        moments.withLock { $0[.path(path)].flatMap { $0 > sent ? $0 : nil } }
    }

    /// True if any of these names was invalidated after a request had been sent.
    func happened(toAny names: [Name], since sent: Timestamp) -> Bool {
        moments.withLock { moments in names.contains { name in moments[name].map { $0 > sent } ?? false } }
    }
}
