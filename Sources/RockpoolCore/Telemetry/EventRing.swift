// The last events, numbered, so that a subscriber can resume after a disconnect (WHATWG HTML §9.2, `Last-Event-ID`).

/// A bounded list of events. Ids are `epoch-number`, so that ids of an earlier server process are recognised.
package struct EventRing: Sendable {
    /// The position from which a subscriber resumes.
    package struct Position: Hashable, Sendable {
        /// The number of the last event the subscriber has.
        package var number: UInt64
        /// True if events that the subscriber missed are no longer stored.
        package var isGap: Bool
    }

    /// Distinguishes this server process's numbers from those of another; without `-`.
    package let epoch: String
    private let capacity: Int
    private var frames: [String] = []
    /// The number of the newest event; 0 before the first.
    package private(set) var last: UInt64 = 0

    /// Creates a ring that keeps the last `capacity` events.
    package init(epoch: String, capacity: Int) {
        self.epoch = epoch
        self.capacity = capacity
    }

    /// Appends an event; `data` is one JSON object.
    package mutating func append(_ name: String, data: JSONValue) {
        last += 1
        if frames.count == capacity { frames.removeFirst() }
        frames.append(Self.frame(id: id(of: last), name: name, data: data))
    }

    /// Returns the id of event `number`.
    package func id(of number: UInt64) -> String { "\(epoch)-\(number)" }

    /// Returns the position of a subscriber that has everything up to `id`; nil is a new subscriber.
    package func position(after id: String?) -> Position {
        guard let id else { return Position(number: last, isGap: false) }
        let parts = id.split(separator: "-", omittingEmptySubsequences: false)
        let first = last - UInt64(frames.count)
        guard parts.count == 2, parts[0] == epoch, let number = UInt64(parts[1]), (first...last).contains(number) else {
            return Position(number: first, isGap: true)
        }
        return Position(number: number, isGap: false)
    }

    /// Returns the events after `number`, as they are sent; nil when some of them are no longer stored.
    package func frames(after number: UInt64) -> ArraySlice<String>? {
        let missing = last - min(number, last)
        return missing <= frames.count ? frames.suffix(Int(missing)) : nil
    }

    /// Returns one event as it is sent.
    package static func frame(id: String, name: String, data: JSONValue) -> String {
        "id: \(id)\nevent: \(name)\ndata: \(String(decoding: data.serialized(), as: UTF8.self))\n\n"
    }
}
