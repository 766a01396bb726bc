// One line of `upstreams[].routes`: a request pattern and its settings (docs/reference/configuration.md#routes).

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
