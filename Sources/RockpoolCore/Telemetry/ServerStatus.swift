// What is told of the whole server: by `/v1/status` and the event feed (docs/reference/admin-api.md#status), and in reports of sites to a
// collector (docs/fleet.md#sites).

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

// MARK: - Reports of sites

/// One site's last report.
package struct SiteRecord: Hashable, Sendable {
    package let site: String
    /// The collector's time.
    package var receivedAt: Timestamp
    /// The site's time of sending, which its signature covers.
    package var sentAt: Timestamp
    /// The id of the message.
    package var id: String
    package var report: JSONValue

    package init(site: String, receivedAt: Timestamp, sentAt: Timestamp, id: String, report: JSONValue) {
        (self.site, self.receivedAt, self.sentAt, self.id, self.report) = (site, receivedAt, sentAt, id, report)
    }

    /// Nil for a document that is no record.
    package init?(_ document: JSONValue) {
        guard let site = document["site"]?.string, SiteName.isValid(site), let id = document["id"]?.string,
            let received = document["receivedAt"]?.string.flatMap(RFC3339.parse),
            let sent = document["sentAt"]?.string.flatMap(RFC3339.parse), let report = document["report"]
        else { return nil }
        self.init(site: site, receivedAt: received, sentAt: sent, id: id, report: report)
    }

    package var document: JSONValue {
        [
            "site": .string(site), "receivedAt": .string(RFC3339.format(receivedAt)), "sentAt": .string(RFC3339.format(sentAt)),
            "id": .string(id), "report": report,
        ]
    }

    /// True if a report that was sent at `moment` is not older: an outbox sends in order, so an older one is a copy of a message.
    package func yields(toSentAt moment: Timestamp) -> Bool { moment >= sentAt }
}

/// The form of a report (docs/fleet.md#sites): what its collector checks on arrival, and shows of older ones.
package enum SiteReportForm {
    private enum Kind { case text, count, seconds, upstreams, storage }

    private static let members: [(name: String, kind: Kind)] = [
        ("site", .text), ("version", .text), ("state", .text), ("pending", .count), ("conflicts", .count), ("failed", .count),
        ("oldestPendingSeconds", .seconds), ("upstreams", .upstreams), ("storage", .storage),
    ]
    private static let storage: [(name: String, kind: Kind)] = [
        ("dataBytes", .count), ("dataLimitBytes", .count), ("cacheBytes", .count), ("trouble", .text),
    ]
    private static let upstream: [(name: String, kind: Kind)] = [("name", .text), ("reachability", .text)]

    private static let textLimit = 1_000
    private static let upstreamLimit = 1_000
    /// JSON numbers are exact up to here in every language.
    private static let greatest: Int64 = 0x1F_FFFF_FFFF_FFFF

    /// Returns the name of a member that is not of its kind; nil if there is none. A member may be absent or null, and another one is that of
    /// a newer site.
    package static func fault(in report: JSONValue) -> String? {
        guard report.object != nil else { return "data" }
        return members.first { !isOf($0.kind, report[$0.name]) }?.name
    }

    /// The report without the members that are not of their kinds.
    package static func readable(_ report: JSONValue) -> JSONValue {
        guard report.object != nil else { return [:] }
        var readable = report
        for member in members where !isOf(member.kind, report[member.name]) { readable[member.name] = .null }
        return readable
    }

    private static func isOf(_ kind: Kind, _ value: JSONValue?) -> Bool {
        guard let value, !value.isNull else { return true }
        func has(_ members: [(name: String, kind: Kind)], _ value: JSONValue) -> Bool {
            value.object != nil && members.allSatisfy { isOf($0.kind, value[$0.name]) }
        }
        return switch kind {
        case .text: value.string.map { $0.utf8.count <= textLimit } ?? false
        case .count: value.integer.map { (0...greatest).contains($0) } ?? false
        case .seconds: value.number.map { (0...Double(greatest)).contains($0.double) } ?? false
        case .upstreams: value.array.map { $0.count <= upstreamLimit && $0.allSatisfy { has(upstream, $0) } } ?? false
        case .storage: has(storage, value)
        }
    }
}

/// Checks names of sites.
package enum SiteName {
    /// Bytes of a name at most.
    package static let limit = 64

    /// True for letters, digits, `-`, `_` and `.`, of which a dot is not the first: such a name leaves no directory.
    package static func isValid(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= limit && !text.hasPrefix(".")
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"):
                    true
                case UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."): true
                default: false
                }
            }
    }
}

/// Decides which sites are silent.
package struct SilenceWatch: Sendable {
    /// A change that an operator is told about.
    package struct News: Hashable, Sendable {
        package let site: String
        package let isSilent: Bool
        /// The last report; nil before the first one.
        package let heardAt: Timestamp?

        /// One sentence for people.
        package var summary: String {
            guard isSilent else { return "\(site) reports again" }
            return heardAt.map { "\(site) has not reported since \(RFC3339.format($0))" } ?? "\(site) has not reported yet"
        }

        /// The input of an operator's program, in the form of a notice.
        package func json(at moment: Timestamp) -> JSONValue {
            let event = isSilent ? "silent" : "heard"
            return [
                "type": .string("rockpool.\(event)"), "timestamp": .string(RFC3339.format(moment)),
                "data": [
                    "event": .string(event), "site": .string(site), "summary": .string(summary),
                    "heardAt": .optional(heardAt.map(RFC3339.format)), "next": "rockpool fleet status",
                ],
            ]
        }
    }

    package let limit: TimeSpan
    private let startedAt: Timestamp
    private var silent: Set<String> = []

    /// - Parameters:
    ///   - limit: the time without a report from which a site is silent.
    ///   - startedAt: the start of the collector. The time before it does not count.
    package init(limit: TimeSpan, startedAt: Timestamp) { (self.limit, self.startedAt) = (limit, startedAt) }

    /// True if a site has not reported for too long.
    /// - Parameter heardAt: its last report; nil before the first one.
    package func isSilent(heardAt: Timestamp?, now: Timestamp) -> Bool {
        now - max(heardAt ?? startedAt, startedAt) >= limit
    }

    /// Returns the sites that have become silent since the last call, and those that report again.
    package mutating func news(_ sites: [(name: String, heardAt: Timestamp?)], now: Timestamp) -> [News] {
        let before = silent
        silent = Set(sites.filter { isSilent(heardAt: $0.heardAt, now: now) }.map(\.name))
        return sites.compactMap { site in
            let isSilent = silent.contains(site.name)
            return isSilent == before.contains(site.name) ? nil : News(site: site.name, isSilent: isSilent, heardAt: site.heardAt)
        }
    }
}
