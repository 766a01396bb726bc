// What `/v1/status` and the event feed tell of the whole server (docs/reference/admin-api.md#status).

/// The state of the whole server, worst first (docs/reference/admin-api.md#status).
package enum SyncState: String, CaseIterable {
    case offline, error, pending, syncing, synced

    /// The states of operations that are not finished and still need a step.
    package static let waiting: [OperationState] = [.pending, .inflight, .uncertain, .conflicted, .parked]

    package static func of(_ counts: [OperationState: Int], isAway: Bool, hasFault: Bool) -> SyncState {
        if isAway { return .offline }
        if counts[.dead, default: 0] > 0 || hasFault { return .error }
        if [.conflicted, .parked, .uncertain, .pending].contains(where: { counts[$0, default: 0] > 0 }) { return .pending }
        return counts[.inflight, default: 0] > 0 ? .syncing : .synced
    }
}

/// Figures since the start of the server.
package struct SyncFigures: Hashable, Sendable {
    /// The share of ended writes that are delivered.
    package static let successTarget = 0.99
    /// The most that may meet a conflict, as a share of ended writes.
    package static let conflictTarget = 0.01
    /// The most seconds from the first sending of a write to its delivery.
    package static let secondsTarget = 5.0
    /// The share of reads that are answered while their upstream is away.
    package static let offlineReadTarget = 0.9

    /// Writes that were delivered, and those that the upstream has refused for good.
    package var delivered = 0
    package var refused = 0
    /// How often a write met a conflict, decided by a strategy or not.
    package var conflicts = 0
    /// Seconds from the first sending of a delivered write to its end.
    package var seconds = BucketCounts(BucketCounts.waits)
    /// Reads whose upstream was away: answered from a copy that was not fresh, and those without a copy.
    package var offlineReads = 0
    package var offlineMisses = 0

    package init() {}

    /// Nil before the first write has ended.
    package var successRatio: Double? { share(delivered, of: delivered + refused) }
    package var conflictRatio: Double? { share(conflicts, of: delivered + refused) }
    /// Nil before the first delivery.
    package var meanSeconds: Double? { seconds.count == 0 ? nil : seconds.sum / Double(seconds.count) }
    /// The share of deliveries within `secondsTarget`.
    package var inTimeRatio: Double? {
        let inTime = zip(seconds.bounds, seconds.counts).filter { $0.0 <= Self.secondsTarget }.reduce(0) { $0 + $1.1 }
        return share(inTime, of: seconds.count)
    }
    /// Nil before the first such read.
    package var offlineReadRatio: Double? { share(offlineReads, of: offlineReads + offlineMisses) }

    private func share(_ part: Int, of all: Int) -> Double? { all > 0 ? Double(part) / Double(all) : nil }
}

/// Counts since the start of the server, in bytes unless noted.
package struct UpstreamTraffic: Hashable, Sendable {
    /// Number of requests that were sent.
    package var requests = 0
    /// Heads and bodies of requests.
    package var sentBytes: Int64 = 0
    /// Heads and bodies of responses.
    package var receivedBytes: Int64 = 0
    /// The part of both that no client caused: probes, refreshes, pulls.
    package var costBytes: Int64 = 0
    /// Bodies that clients received.
    package var deliveredBytes: Int64 = 0
    /// The part of it that came from the cache, or from the fetch of another client.
    package var savedBytes: Int64 = 0

    package init() {}

    /// Counts one request with its response.
    package mutating func count(sent: Int64, received: Int64, forClient: Bool) {
        requests += 1
        sentBytes += sent
        receivedBytes += received
        if !forClient { costBytes += sent + received }
    }

    /// Counts the body of one reply.
    package mutating func deliver(_ bytes: Int64, isSaved: Bool) {
        deliveredBytes += bytes
        if isSaved { savedBytes += bytes }
    }
}

/// A bounded list of events (WHATWG HTML §9.2, `Last-Event-ID`). Ids are `epoch-number`, so that ids of an earlier server process are
/// recognised.
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
