// Recent invalidations, so that a response in flight does not bring the old state back as fresh (RFC 9111 §4.4).
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

    /// The names of two generations: the older one is dropped as a whole, so that no name is moved when another one comes.
    private struct Moments {
        private var recent: [Name: Timestamp] = [:]
        private var older: [Name: Timestamp] = [:]

        var isEmpty: Bool { recent.isEmpty && older.isEmpty }

        subscript(_ name: Name) -> Timestamp? { recent[name] ?? older[name] }

        mutating func note(_ name: Name, at moment: Timestamp) {
            recent[name] = moment
            guard recent.count >= Invalidations.generationCount else { return }
            swap(&recent, &older)
            recent.removeAll(keepingCapacity: true)
        }
    }

    /// The number of names in a generation.
    private static let generationCount = 4096

    private let moments = Mutex(Moments())

    /// True if nothing was invalidated lately.
    var isEmpty: Bool { moments.withLock(\.isEmpty) }

    func note(_ names: [Name], at moment: Timestamp) {
        moments.withLock { moments in
            for name in names { moments.note(name, at: moment) }
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
