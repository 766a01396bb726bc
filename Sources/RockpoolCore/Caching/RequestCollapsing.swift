// Request collapsing: which requests share one fetch, and which of them its response may serve (RFC 9111 §4, last paragraph;
// docs/security-model.md#collapsing); and what is remembered of keys without a stored response.
import DequeModule
import HTTPTypes

/// Request collapsing. One request, the leader, is sent. Other requests for the same key follow: they wait for the response head, then
/// share the response or are released to be forwarded on their own.
package enum RequestCollapsing {
    /// The reason why a request cannot lead or follow, or can lead but not follow.
    package enum Obstacle: String, CaseIterable, Sendable, Codable {
        /// Only GET is collapsed: a response to HEAD has no body to share, and a HEAD need not wait for the response to a GET.
        case method
        case requestBody = "request-body"
        /// The response may be a part.
        case range
        /// The response may be a 304 or 412, which is meant for its requester alone.
        case condition
        /// `no-store`; for following also any directive stricter than "any fresh response".
        case requestDirective = "request-directive"
        /// The request carries a field that changes how frameworks respond but is not part of the key.
        case overrideHeader = "override-header"
        /// The request opens an event stream, which has no end to wait for and is not stored.
        case eventStream = "event-stream"
    }

    /// The reason why `request` cannot lead; nil when it can.
    /// - Parameter wishes: The request's directives, parsed by `CacheControl(request:)`.
    package static func obstacleToLeading(_ request: RequestHead, hasBody: Bool, wishes: CacheControl) -> Obstacle? {
        if request.method != .get { return .method }
        if hasBody { return .requestBody }
        if wishes.noStore { return .requestDirective }
        for field in request.fields {
            switch field.name.canonicalName {
            case "range": return .range
            case "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range": return .condition
            case "accept" where field.value.contains(anyCase: "text/event-stream"): return .eventStream
            default: if UnkeyedField(field.name) == .overrides { return .overrideHeader }
            }
        }
        return nil
    }

    /// True if a range request that begins at `start` should read from a running fetch of the whole instead of starting its own.
    /// - Parameters:
    ///   - received: Body bytes received so far.
    ///   - elapsed: The time in which they were received.
    package static func isWorthAwaiting(_ start: Int64, received: Int64, in elapsed: TimeSpan) -> Bool {
        let missing = start - received
        let soon = received.multipliedClamped(by: longestAwaited.milliseconds) / max(1, elapsed.milliseconds)
        return missing <= max(alwaysAwaited, soon)
    }

    /// True if a transfer should be cut before `start`, so that another one brings the bytes from there on; otherwise they are awaited.
    /// - Parameters:
    ///   - received: Body bytes received so far.
    ///   - elapsed: The time in which they were received.
    package static func isWorthCutting(before start: Int64, received: Int64, in elapsed: TimeSpan) -> Bool {
        if elapsed < rateKnownAfter, start - received <= awaitedAtFirst { return false }
        return !isWorthAwaiting(start, received: received, in: max(elapsed, rateKnownAfter))
    }

    /// Before this time the rate of a transfer says little: it begins with what the network and the origin hold ready.
    private static let rateKnownAfter = TimeSpan.milliseconds(250)
    /// Bytes: about as much as is on the way when a transfer is cut, and lost.
    private static let awaitedAtFirst: Int64 = .mib(1)

    /// A range expected to begin within this time is awaited; a later one is fetched separately.
    private static let longestAwaited = TimeSpan.seconds(1)
    /// Bytes: about the cost of a separate request.
    private static let alwaysAwaited: Int64 = .kib(64)

    /// The reason why `request` cannot follow; nil when it can. A request that requires revalidation may still lead: its response is newer
    /// than any other.
    package static func obstacleToFollowing(_ request: RequestHead, hasBody: Bool, wishes: CacheControl) -> Obstacle? {
        if let obstacle = obstacleToLeading(request, hasBody: hasBody, wishes: wishes) { return obstacle }
        let insists = wishes.noCache != .absent || wishes.maxAge != nil || wishes.minFresh != nil || wishes.onlyIfCached
        return insists ? .requestDirective : nil
    }

    /// The state of the leader's fetch once its head has arrived or the fetch has failed.
    package enum Arrival: Hashable, Sendable {
        /// No head was received.
        case failed
        /// The response is relayed and not stored.
        case notStored
        /// The response is being stored: the stored form, selected by the leader's fields, and its partition.
        case stored(StoredResponse, StoragePartition)
    }

    /// The action of a follower.
    package enum Outcome: Hashable, Sendable {
        /// Read the leader's response as it arrives.
        case share
        /// Forward on its own; after a failure one of the released requests leads again.
        case release(Release)
    }

    /// The reason why a follower cannot share.
    package enum Release: String, CaseIterable, Sendable, Codable {
        /// The response belongs to another identity, or is private without a known owner.
        case isPrivate = "private"
        case vary
        case notStored = "not-stored"
        /// The response is stored but must not be reused without validation, which is what sharing would be (RFC 9111 §4).
        case mustValidate = "must-validate"
        case failed

        /// True if the next response is likely to be unshareable too, so that `HitForMissKeys` should record the key.
        package var isLasting: Bool {
            switch self {
            case .isPrivate, .notStored, .mustValidate: true
            case .vary, .failed: false
            }
        }
    }

    /// Decides for one follower.
    /// - Parameter identity: The follower's identity, in the form that `StoragePartition.own` accepts.
    package static func outcome(of arrival: Arrival, for follower: RequestHead, identity: String?, now: Timestamp) -> Outcome {
        switch arrival {
        case .failed: return .release(.failed)
        case .notStored: return .release(.notStored)
        case .stored(let response, let partition):
            let isReadable = partition == .shared || (partition != .anonymous && partition == .own(identity))
            guard isReadable else { return .release(.isPrivate) }
            guard Vary.matches(stored: response, request: follower) else { return .release(.vary) }
            // Decide as if the response had been stored earlier, strictly by the RFC: the policy's relaxations apply only while the
            // upstream is unreachable.
            switch Reuse.decide(candidates: [response], request: follower, context: ReuseContext(), now: now) {
            case .fresh, .stale: return .share
            case .validate, .complete, .none, .gatewayTimeout: return .release(.mustValidate)
            }
        }
    }
}

// MARK: - Keys without a stored response

/// A set of uncollapsible keys, limited in size and time. Recording a key again does not extend its time: once per span one request leads,
/// and shows whether sharing has become possible.
package struct HitForMissKeys: Sendable {
    /// Number of keys; beyond it the oldest is dropped. At 24 bytes plus a hash table entry each, about 200 KiB.
    package static let defaultCount = 4096
    /// The time for which a key is remembered.
    package static let defaultSpan = TimeSpan.seconds(120)

    private let limit: Int
    private let span: TimeSpan
    /// Only the key's hash is stored, so that long URLs take no space. A hash collision merely disables collapsing for a while.
    private var moments: [Int: Timestamp] = [:]
    /// In order of insertion, for expiry; at most `limit`.
    private var order: Deque<(hash: Int, moment: Timestamp)> = []

    /// - Parameter limit: Number of keys, at least 1.
    package init(limit: Int = defaultCount, span: TimeSpan = defaultSpan) {
        self.limit = max(1, limit)
        self.span = span
    }

    /// Keys held, including expired ones not yet removed.
    package var count: Int { order.count }

    /// Records that a response for `key` could not be shared.
    package mutating func note(_ key: CacheKey, now: Timestamp) {
        while let oldest = order.first, !isLive(oldest.moment, now: now) { forgetOldest() }
        guard !contains(key, now: now) else { return }
        while order.count >= limit { forgetOldest() }
        moments[key.hashValue] = now
        order.append((key.hashValue, now))
    }

    /// True if requests for `key` should be forwarded immediately.
    package func contains(_ key: CacheKey, now: Timestamp) -> Bool {
        moments[key.hashValue].map { isLive($0, now: now) } ?? false
    }

    /// A time in the future, after the clock was set back, counts as expired; otherwise the key would be remembered indefinitely.
    private func isLive(_ moment: Timestamp, now: Timestamp) -> Bool { moment <= now && now - moment < span }

    private mutating func forgetOldest() {
        guard let oldest = order.popFirst() else { return }
        // If the key was recorded again after the clock was set back, its later line in `order` expires it.
        if moments[oldest.hash] == oldest.moment { moments[oldest.hash] = nil }
    }
}

/// Counts of requests by key, bounded (docs/caching.md#categories, `min_uses`): of two generations, each of up to `capacity` keys, the
/// older one is forgotten when the newer is full.
package struct UseCounts: Sendable {
    private let capacity: Int
    private var newer: [Int: Int] = [:]
    private var older: [Int: Int] = [:]

    /// Counts up to twice `capacity` keys, about 32 bytes each.
    package init(capacity: Int) { self.capacity = capacity }

    /// Counts a request, and returns the number of requests for the key that are remembered, this one included.
    package mutating func count(_ key: String) -> Int {
        // A rare equal hash only stores a response early.
        let hash = key.hashValue
        if newer[hash] == nil, newer.count >= capacity { (older, newer) = (newer, [:]) }
        newer[hash, default: 0] += 1
        return (newer[hash] ?? 0) + (older[hash] ?? 0)
    }
}

/// The last event of each URL that recently had one (docs/reference/admin-api.md#explain *explain*).
package struct KeyEvents: Sendable {
    package enum Event: Hashable, Sendable {
        case stored
        /// Stored in place of a previous entry.
        case replaced
        /// Not stored, with the reason as named by `Storability.Reason` or by the store.
        case notStored(String)
        /// Evicted to free space.
        case evicted
        /// Removed by an operator's purge.
        case purged
        /// Removed by a cleanup: past its offline window, or damaged.
        case cleanedUp

        /// The event's name, one word.
        package var name: String {
            switch self {
            case .stored: "stored"
            case .replaced: "replaced"
            case .notStored: "not-stored"
            case .evicted: "evicted"
            case .purged: "purged"
            case .cleanedUp: "cleaned-up"
            }
        }

        /// The reason, for events that have one.
        package var reason: String? {
            if case .notStored(let reason) = self { reason } else { nil }
        }
    }

    package struct Record: Hashable, Sendable {
        package var event: Event
        package var at: Timestamp
    }

    /// Minimum number of URLs remembered; the maximum is twice as many.
    package static let minimumCount = 4096

    // Keyed by hash: URLs are long, and a collision among a few thousand is improbable.
    private var young: [Int: Record] = [:]
    private var old: [Int: Record] = [:]

    package init() {}

    /// Records an event. When the limit is exceeded, the older half is dropped.
    package mutating func note(_ event: Event, of url: String, at now: Timestamp) {
        if young.count >= Self.minimumCount { (old, young) = (young, [:]) }
        young[url.hashValue] = Record(event: event, at: now)
    }

    /// The last event of `url`; nil if none is recorded.
    package func last(of url: String) -> Record? { young[url.hashValue] ?? old[url.hashValue] }
}
