// Which open connection has been idle longest, without looking at all of them (docs/security-model.md#connections).
import HeapModule

/// Open connections by how long they may have been idle.
///
/// A connection moves in and out of idleness by writing a number, as often as it is asked something, and tells nobody. So what lies
/// here is when it was idle at the earliest; that only ever grows, and the first whose number still holds has been idle longest.
struct ConnectionQueue {
    private struct Place: Comparable {
        let earliest: UInt64
        let connection: OpenConnection

        static func < (a: Place, b: Place) -> Bool { a.earliest < b.earliest }
        static func == (a: Place, b: Place) -> Bool { a.earliest == b.earliest }
    }

    /// Places that are out of date are mended, so many at a time: each admission costs the same, however many are open.
    static let looks = 64
    private var heap = Heap<Place>()
    private(set) var count = 0
    /// How many are kept, those of closed connections included.
    var places: Int { heap.count }

    /// One more is open.
    mutating func insert(_ connection: OpenConnection) {
        count += 1
        heap.insert(Place(earliest: connection.openedAt, connection: connection))
    }

    /// One has closed. Its place is taken away when it is met, or when there are more such places than others.
    mutating func noteClosed() {
        count -= 1
        if heap.count > 2 * count + Self.looks { heap = Heap(heap.unordered.filter(\.connection.isOpen)) }
    }

    /// The one that has been idle longest; nil when none is idle, or none was found among so many that were at work.
    /// - Parameter now: in nanoseconds of uptime.
    mutating func longestIdle(now: UInt64) -> OpenConnection? {
        for _ in 0..<Self.looks {
            guard let first = heap.min else { return nil }
            let since = first.connection.idleSince
            if !first.connection.isOpen {
                heap.removeMin()
            } else if since <= first.earliest {
                return first.connection
            } else {
                // At work, or idle since later. What is put off to this moment is not looked at again in it.
                guard first.earliest < now else { return nil }
                heap.replaceMin(with: Place(earliest: min(since, now), connection: first.connection))
            }
        }
        return nil
    }
}
