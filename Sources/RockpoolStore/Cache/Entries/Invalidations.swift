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
        /// An absolute URL with any query whose representation an own write nearby may have changed: that of a path above the target.
        case near(String)
        /// A cache group of an origin, given as its URL (RFC 9875).
        case group(String, origin: String)
        /// The partition of an identity that was forgotten.
        case identity(String)
        /// Everything whose URL begins with this prefix.
        case tree(String)

        /// The same name for every spelling of its URL.
        var canonical: Name {
            switch self {
            case .url(let url): .url(url.canonicalEscapes)
            case .path(let url): .path(url.canonicalEscapes)
            case .near(let url): .near(url.canonicalEscapes)
            case .tree(let url): .tree(url.canonicalEscapes)
            case .group, .identity: self
            }
        }
    }

    /// The names of two generations: the older one is dropped as a whole, so that no name is moved when another one comes.
    private struct Moments {
        private var recent: [Name: Tick] = [:]
        private var older: [Name: Tick] = [:]

        var isEmpty: Bool { recent.isEmpty && older.isEmpty }

        subscript(_ name: Name) -> Tick? {
            let name = name.canonical
            return recent[name] ?? older[name]
        }

        mutating func note(_ name: Name, at moment: Tick) {
            recent[name.canonical] = moment
            guard recent.count >= Invalidations.generationCount else { return }
            swap(&recent, &older)
            recent.removeAll(keepingCapacity: true)
        }
    }

    /// The number of names in a generation.
    private static let generationCount = 4096

    private let moments = Mutex(Moments())
    /// The paths whose stored copies are all marked as older than an own write nearby, with the partitions they are marked in.
    private let marked = Mutex<[String: Set<String>]>([:])

    /// True if nothing was invalidated lately.
    var isEmpty: Bool { moments.withLock(\.isEmpty) }

    func note(_ names: [Name], at moment: Tick) {
        moments.withLock { moments in
            for name in names { moments.note(name, at: moment) }
        }
    }

    /// Returns the end of the last own write to the path after a request had been sent; nil without one.
    /// - Parameter isNearby: true if a write nearby counts, too.
    func ownWrite(to path: String, since sent: Tick, isNearby: Bool = false) -> Tick? {
        moments.withLock { moments in
            [moments[.path(path)], isNearby ? moments[.near(path)] : nil].compactMap(\.self).filter { $0 > sent }.max()
        }
    }

    /// True if every stored copy of the path is marked already as older than a write nearby.
    func isMarked(_ path: String, in partitions: String) -> Bool { marked.withLock { $0[path]?.contains(partitions) ?? false } }

    /// Notes that every stored copy of these paths is marked. Called on the writer's thread.
    func noteMarked(_ paths: [String], in partitions: String) {
        marked.withLock { marked in
            if marked.count >= Self.generationCount { marked = [:] }
            for path in paths { marked[path, default: []].insert(partitions) }
        }
    }

    /// Notes that a copy of the path is stored or updated. Called on the writer's thread, before its row is written.
    func noteStored(_ path: String) {
        marked.withLock { marked in
            if !marked.isEmpty { marked[path] = nil }
        }
    }

    /// True if any of these names was invalidated after a request had been sent.
    func happened(toAny names: [Name], since sent: Tick) -> Bool {
        moments.withLock { moments in names.contains { name in moments[name].map { $0 > sent } ?? false } }
    }
}
