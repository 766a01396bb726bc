// One line of `upstreams[].routes`: a request pattern and its settings (docs/reference/configuration.md#routes), with the rules of its
// answers.

/// The time limits of a route.
package struct RouteTimeouts: Hashable, Sendable {
    /// From sending the request to the first byte of the response; nil: the upstream's.
    package var firstByte: TimeSpan?
    /// The longest pause within a body.
    package var idle: TimeSpan

    package init(firstByte: TimeSpan? = nil, idle: TimeSpan = .forever) { (self.firstByte, self.idle) = (firstByte, idle) }
}

/// The reply to a queued write, as a route sets it.
package enum OfflineResponse: Hashable, Sendable {
    /// 202 with the status document.
    case accepted
    /// The upstream's reply as far as it can be computed: of a GraphQL mutation, or of a write to a file.
    case optimistic
    /// The same reply to each write.
    case fixed(FixedReply)
}

/// A reply that the configuration gives in full.
package struct FixedReply: Hashable, Sendable {
    /// 200 to 299.
    package var status = 200
    /// The media type of the body; nil: `text/plain` where there is a body.
    package var type: String?
    package var body = ""

    package init(status: Int = 200, type: String? = nil, body: String = "") { (self.status, self.type, self.body) = (status, type, body) }
}

/// The bounds of what waits on a telemetry route: past either, the oldest writes are dropped and counted (docs/outbox.md#telemetry).
package struct TelemetrySettings: Hashable, Sendable {
    package var keep = TimeSpan.hours(24)
    package var limit = ByteCount.mb(50)

    package init(keep: TimeSpan = .hours(24), limit: ByteCount = .mb(50)) { (self.keep, self.limit) = (keep, limit) }
}

/// What the writes of a route keep their order with.
package enum RouteOrder: String, CaseIterable, Sendable, Codable {
    /// Those to the same entity; a POST to an undeclared path, with those of its client to that path.
    case entity
    /// Those to the same path, whatever resources are declared.
    case path
    /// Those of the same sender: the principal; without a credential, the address.
    case sender
    /// All of the upstream.
    case upstream

    package init(_ order: LaneOrder) { self = order == .global ? .upstream : .entity }
}

/// A rule for some requests of an upstream; the first match applies.
package struct Route: Hashable, Sendable {
    package enum Queue: String, CaseIterable, Sendable, Codable { case allowed, never, always }
    /// Whether a refused write holds only what names it, or the later writes of its client in the lane (docs/outbox.md#after-a-refusal).
    package enum Refused: String, CaseIterable, Sendable, Codable { case skip, hold }
    package enum Store: String, CaseIterable, Sendable, Codable { case standard, always, never }
    package enum Cache: String, CaseIterable, Sendable, Codable { case standard, body }
    /// The protocol that its requests speak.
    package enum Kind: String, CaseIterable, Sendable, Codable { case standard, graphql, s3, git, oci, telemetry }

    /// `METHOD pattern` or `pattern`; `*` is one segment, `**` any number.
    package var match: String
    package var category: String?
    package var strategy: Strategy?
    package var queue: Queue
    package var store: Store
    package var cache: Cache
    /// True if its requests ask, although their method is that of a write: they are never queued, and cached by their body.
    package var read = false
    package var kind: Kind
    /// Of a GraphQL route: the variable that names what a mutation changes. Mutations of one value keep their order.
    package var lane: String?
    /// Of a telemetry route: the time for which its writes wait; nil: `TelemetrySettings.keep`.
    package var keep: TimeSpan?
    /// Of a telemetry route: the most bytes that wait; nil: `TelemetrySettings.limit`.
    package var limit: ByteCount?
    /// What its writes keep their order with; nil: as the upstream says.
    package var order: RouteOrder?
    /// The reply to a queued write; nil: as the upstream answered before, if that answer carried nothing, else 202.
    package var offlineResponse: OfflineResponse?
    /// Time limits of its own, for long polls and streams.
    package var timeouts: RouteTimeouts?
    /// The equivalence of queries in No-Vary-Search syntax; overrides the origin's field.
    package var searchVariance: SearchVariance?
    /// The condition under which an answer to a write is a success; nil: the resource's, else every 2xx.
    package var success: SuccessRule?
    package var onRefused = Refused.skip
    /// True if a success of this request ends its client's session (docs/outbox.md#forgotten).
    package var logout = false
    /// The lifetimes of its responses; nil: as they say, or as the category says.
    package var ttl: LifetimeRule?
    /// The staleness up to which its responses are served in place of errors; nil: as the upstream says.
    package var staleOnError: TimeSpan?
    /// What becomes of a fetch whose client leaves; nil: as the upstream says.
    package var onAbort: AbortRule?

    package init(
        match: String, category: String? = nil, strategy: Strategy? = nil, queue: Queue = .allowed,
        store: Store = .standard, cache: Cache = .standard, kind: Kind = .standard, lane: String? = nil,
        searchVariance: SearchVariance? = nil
    ) {
        self.match = match
        self.category = category
        self.strategy = strategy
        self.queue = queue
        self.store = store
        self.cache = cache
        self.kind = kind
        self.lane = lane
        self.searchVariance = searchVariance
    }

    /// The bounds of what waits on a telemetry route; nil for any other route.
    package var telemetry: TelemetrySettings? {
        guard kind == .telemetry else { return nil }
        return TelemetrySettings(keep: keep ?? TelemetrySettings().keep, limit: limit ?? TelemetrySettings().limit)
    }

    /// True if the body of a request is part of the cache key.
    package var isKeyedByBody: Bool { cache == .body || read }
    /// True if the body of a request decides whether it is a read, and is part of the cache key.
    package var isReadByBody: Bool { isKeyedByBody || kind == .graphql || kind == .git || kind == .oci }

    /// True if the route forbids to store or to queue, or ends sessions: such a route also concerns other spellings of its paths
    /// (docs/reference/configuration.md#spellings).
    var forbids: Bool { store == .never || queue == .never || logout }

    /// This route, and what another one forbids.
    func forbidding(as other: Route) -> Route {
        var route = self
        if other.store == .never { route.store = .never }
        if other.queue == .never { route.queue = .never }
        route.logout = logout || other.logout
        return route
    }
}

/// The strategy for serving a read (docs/architecture.md#vocabulary).
package enum Strategy: String, CaseIterable, Sendable, Codable {
    /// A fresh stored response, else the upstream (revalidated if a response is stored). The default.
    case cacheFirst = "cache-first"
    /// The upstream; a stored response only if the upstream does not respond.
    case networkFirst = "network-first"
    /// The stored response immediately, however stale within its window, with revalidation in the background.
    case staleWhileRevalidate = "stale-while-revalidate"
    /// The stored response or 504; nothing is sent upstream.
    case cacheOnly = "cache-only"
    /// The upstream only; nothing is stored.
    case networkOnly = "network-only"
}

/// The rules for stored responses of an upstream (docs/caching.md#policies).
package enum CachePolicy: String, CaseIterable, Sendable, Codable {
    /// Strict RFC 9111.
    case standard
    /// Strict while online; while the upstream is unreachable, stale and `no-cache` responses are served within the offline window.
    case offlineFirst = "offline-first"
}

// MARK: - Success

/// What the answer to a write must show so that the write counts as applied. Statuses outside 200–299 keep their meaning
/// (docs/reference/configuration.md#success).
package struct SuccessRule: Hashable, Sendable {
    /// The statuses of success; empty for all from 200 to 299.
    package var status: [Int]
    /// A JSON Pointer into the answer's body; nil if the body does not matter.
    package var pointer: String?
    /// True if the member must be absent, `null` or an empty list, false if it must be there; nil compares it with `equals`.
    package var absent: Bool?
    /// The value that the member must have.
    package var equals: JSONValue?

    /// Creates a rule; without arguments every answer of 2xx is a success.
    package init(status: [Int] = [], pointer: String? = nil, absent: Bool? = nil, equals: JSONValue? = nil) {
        self.status = status
        self.pointer = pointer
        self.absent = absent
        self.equals = equals
    }

    /// True if the rule depends on the answer's body.
    package var needsBody: Bool { pointer != nil }
}

// MARK: - Caching

/// `ttl` of a route. It is kept with a stored response, so that every later decision about it follows the same rule
/// (docs/caching.md#lifetimes-by-route).
package struct LifetimeRule: Hashable, Sendable {
    /// `default`: the lifetime of a response that states none; nil: that of the category, or a heuristic one.
    package var fallback: TimeSpan?
    /// `min`: no lifetime is shorter; of a lifetime that the response states only with `overrides`.
    package var least: TimeSpan?
    /// `max`: no lifetime is longer.
    package var most: TimeSpan?
    /// `override`: the rule counts more than what the response says. `no-cache` and a lifetime of zero then count as nothing said, and
    /// `must-revalidate` and its kind do not apply.
    package var overrides = false

    package init() {}

    /// True if `min` is above `max`.
    package var isContradictory: Bool { least.map { least in most.map { least > $0 } ?? false } ?? false }

    /// Reads the text that is kept with a stored response; nil if it is none.
    init?(_ text: String) {
        self.init()
        for member in text.split(separator: " ") {
            let parts = member.split(separator: "=", maxSplits: 1)
            let span = parts.count == 2 ? Int64(parts[1]).map { TimeSpan(milliseconds: max(0, $0)) } : nil
            switch (parts.first, span) {
            case ("default", let span?): fallback = span
            case ("min", let span?): least = span
            case ("max", let span?): most = span
            case ("override", nil): overrides = true
            default: return nil
            }
        }
    }

    /// The text that is kept with a stored response; spans in milliseconds.
    var text: String {
        let spans = [("default", fallback), ("min", least), ("max", most)].compactMap { name, span in
            span.map { "\(name)=\($0.milliseconds)" }
        }
        return (spans + (overrides ? ["override"] : [])).joined(separator: " ")
    }
}

/// The decision about one fetch when its client disconnects (docs/caching.md#storability; cf. Squid's quick_abort_min, _max and _pct).
package enum ClientAbortPolicy: Hashable, Sendable {
    /// Read the rest and store it.
    case finish
    case abort(Reason)

    /// The reason why the rest is not fetched.
    package enum Reason: String, CaseIterable, Sendable, Codable {
        /// The response is not stored, so nothing of it would remain.
        case notStored = "not-stored"
        /// Too many bytes remain.
        case tooMuchRemains = "too-much-remains"
        /// The length is not announced; the response may never end.
        case endUnknown = "end-unknown"
        /// The configuration says so (`on_abort: never`).
        case rule
    }

    /// A remainder up to this size is read: about the amount that socket buffers already hold, and that a new connection with its TLS
    /// handshake would cost again.
    package static let smallRest = ByteCount.kib(64)
    /// A fetch with at least this part received counts as nearly done.
    package static let nearlyDonePercent: Int64 = 95
    /// The upper limit for a nearly finished fetch without a client: five percent of a disk image is still a lot.
    package static let maxRest = ByteCount.mib(16)

    /// - Parameters:
    ///   - received: Body bytes so far.
    ///   - announced: The length of the whole body, if the response announces it.
    ///   - hasOtherReaders: True if another client still reads the same fetch.
    ///   - rule: The rule of the configuration; nil: the built-in bounds.
    package static func decide(
        received: ByteCount, announced: ByteCount?, isStored: Bool, hasOtherReaders: Bool, rule: AbortRule? = nil
    ) -> ClientAbortPolicy {
        if hasOtherReaders { return .finish }
        guard isStored else { return .abort(.notStored) }
        switch rule {
        case .word(.always): return .finish
        case .word(.never): return .abort(.rule)
        case .bounds(let bounds): return decide(received, of: announced, within: bounds, maxRest: nil)
        case nil: return decide(received, of: announced, within: AbortBounds(), maxRest: maxRest)
        }
    }

    private static func decide(
        _ received: ByteCount, of announced: ByteCount?, within bounds: AbortBounds, maxRest: ByteCount?
    ) -> ClientAbortPolicy {
        guard let announced else { return .abort(.endUnknown) }
        let rest = announced - received
        if rest <= bounds.finishBelow { return .finish }
        let isNearlyDone =
            rest.bytes.multipliedClamped(by: 100) <= announced.bytes.multipliedClamped(by: Int64(100 - bounds.finishAbovePercent))
        return isNearlyDone && rest <= maxRest ?? rest ? .finish : .abort(.tooMuchRemains)
    }
}

/// What the configuration says about a fetch whose client leaves (`on_abort`).
package enum AbortRule: Hashable, Sendable {
    package enum Word: String, CaseIterable, Sendable, Codable { case always, never }

    /// Read the rest of every body that is stored, or of none.
    case word(Word)
    case bounds(AbortBounds)
}

/// The rest of a body that is read without a client. A body whose length is not announced is outside.
package struct AbortBounds: Hashable, Sendable {
    /// A rest up to this size is read.
    package var finishBelow = ClientAbortPolicy.smallRest
    /// The rest is read once this part of the body has arrived, in percent, 0…100.
    package var finishAbovePercent = Int(ClientAbortPolicy.nearlyDonePercent)

    package init() {}
}
