// The last events, numbered, so that a listener who was away can go on where it stopped (WHATWG HTML §9.2, `Last-Event-ID`).

/// A bounded list of events. Ids are `epoch-number`: those of an earlier server are known as such.
package struct EventRing: Sendable {
    /// Where a listener goes on.
    package struct Position: Hashable, Sendable {
        /// The number of the last event it has.
        package var number: UInt64
        /// Whether events it does not have are gone.
        package var isGap: Bool
    }

    /// Tells this server's numbers from another's; without `-`.
    package let epoch: String
    private let capacity: Int
    private var frames: [String] = []
    /// The number of the newest event; 0 before the first.
    package private(set) var last: UInt64 = 0

    /// Keeps the last `capacity` events.
    package init(epoch: String, capacity: Int) {
        self.epoch = epoch
        self.capacity = capacity
    }

    /// Takes an event; `data` is one JSON object.
    package mutating func append(_ name: String, _ data: JSONValue) {
        last += 1
        if frames.count == capacity { frames.removeFirst() }
        frames.append(Self.frame(id: id(of: last), name, data))
    }

    /// The id of event `number`.
    package func id(of number: UInt64) -> String { "\(epoch)-\(number)" }

    /// Where a listener goes on that has everything up to `id`; nil is one that begins now.
    package func position(after id: String?) -> Position {
        guard let id else { return Position(number: last, isGap: false) }
        let parts = id.split(separator: "-", omittingEmptySubsequences: false)
        let first = last - UInt64(frames.count)
        guard parts.count == 2, parts[0] == epoch, let number = UInt64(parts[1]), (first...last).contains(number) else {
            return Position(number: first, isGap: true)
        }
        return Position(number: number, isGap: false)
    }

    /// The events after `number`, as they are sent; nil when some of them are gone.
    package func frames(after number: UInt64) -> ArraySlice<String>? {
        let missing = last - min(number, last)
        return missing <= frames.count ? frames.suffix(Int(missing)) : nil
    }

    /// One event as it is sent.
    package static func frame(id: String, _ name: String, _ data: JSONValue) -> String {
        "id: \(id)\nevent: \(name)\ndata: \(String(decoding: data.serialized(), as: UTF8.self))\n\n"
    }
}
