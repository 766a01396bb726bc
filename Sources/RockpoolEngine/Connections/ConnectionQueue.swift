// Finds the open connection that has been idle longest, without checking all of them (docs/security-model.md#connections).
import HeapModule

/// Open connections, ordered by a lower bound of the time since when they are idle.
///
/// A connection records each change between busy and idle in an atomic number, without an update of this queue. The queue therefore stores
/// the earliest possible time for each connection. The bound only grows, so if the first connection's bound is still exact, it has been
/// idle longest.
struct ConnectionQueue {
    private struct Place: Comparable {
        let earliest: UInt64
        let connection: OpenConnection

        static func < (a: Place, b: Place) -> Bool { a.earliest < b.earliest }
        static func == (a: Place, b: Place) -> Bool { a.earliest == b.earliest }
    }

    /// Maximum number of outdated places corrected per call: each admission costs the same, however many connections are open.
    static let looks = 64
    private var heap = Heap<Place>()
    private(set) var count = 0
    /// The number of stored places, those of closed connections included.
    var places: Int { heap.count }

    /// Adds an open connection.
    mutating func insert(_ connection: OpenConnection) {
        count += 1
        heap.insert(Place(earliest: connection.openedAt, connection: connection))
    }

    /// Counts a closed connection. Its place is removed when it is found, or when such places outnumber the others by more than `looks`.
    mutating func noteClosed() {
        count -= 1
        if heap.count > 2 * count + Self.looks { heap = Heap(heap.unordered.filter(\.connection.isOpen)) }
    }

    /// Returns the connection that has been idle longest; nil when none is idle, or when the first places examined were all busy.
    /// - Parameter now: nanoseconds of uptime.
    mutating func longestIdle(now: UInt64) -> OpenConnection? {
        for _ in 0..<Self.looks {
            guard let first = heap.min else { return nil }
            let since = first.connection.idleSince
            if !first.connection.isOpen {
                heap.removeMin()
            } else if since <= first.earliest {
                return first.connection
            } else {
                // The connection is busy, or idle since a later time. A place moved to `now` is not examined again at the same moment.
                guard first.earliest < now else { return nil }
                heap.replaceMin(with: Place(earliest: min(since, now), connection: first.connection))
            }
        }
        return nil
    }
}
