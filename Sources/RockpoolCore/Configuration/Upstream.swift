// A declared upstream: the complete configuration of one API (docs/reference/configuration.md#upstreams), with its TLS, its queue and its
// budget.

/// A declared upstream. Declaring it is the operator's consent to offline use and to queueing its writes.
package struct Upstream: Hashable, Sendable {
    package var name: String
    package var origin: OriginAddress
    /// The path of the API below the origin, such as `/api/v2`, which its gateway puts before the paths of its clients; empty for none. All other
    /// settings name whole paths of the origin.
    package var basePath = ""
    /// The listener that represents the origin; nil if there is none.
    package var gatewaySettings: GatewaySettings?
    package var policy: CachePolicy
    /// True to send the `Host` that the client used at the gateway, for requests whose signature covers it.
    package var preserveHost = false
    /// True to send `Forwarded` and `X-Forwarded-*` with requests of the gateway.
    package var forwarded = false
    /// The key with which signed requests are signed anew; nil leaves signatures as they are.
    package var sign: SigningSettings?
    package var intercept: Bool
    package var identity: IdentityRule
    /// The method of refreshing expired access tokens for queued writes; nil waits for the client.
    package var refresh: RefreshRecipe?
    /// The parent proxy; nil if there is none.
    package var parent: ParentSettings?
    package var tls: TLSSettings
    package var probe: Probe?
    package var timeouts: UpstreamTimeouts
    package var queue: QueueSettings
    package var idempotency: IdempotencySettings
    package var order: LaneOrder
    package var routes: [Route]
    package var resources: [Resource]
    /// Whether it learns its resources where none is declared.
    package var undeclaredResources = UndeclaredResources.learned
    /// What it learns beside its traffic.
    package var learn = LearnRule()
    /// The pages of other origins that may read replies that Rockpool makes.
    package var cors = CrossOriginRule.remembered
    /// Whether requests carry `Via`.
    package var sendVia = SendVia.auto
    /// Whether clients get `Surrogate-Key`, `Cache-Tag` and `xkey`.
    package var tags = TagVisibility.hide
    /// The answer where neither the upstream nor the cache has one.
    package var onMiss = MissAnswer.problem
    /// The staleness up to which its responses are served in place of errors; nil: as they say.
    package var staleOnError: TimeSpan?
    /// What becomes of a fetch whose client leaves; nil: the built-in bounds.
    package var onAbort: AbortRule?
    /// The request budget; nil: none, and announcements are not heeded.
    package var rateLimit: RateLimitRule?
    /// Whether its connection is metered.
    package var metered = MeteredRule.auto
    /// Local hours for large transfers that no client waits for; nil: always.
    package var transferHours: DayHours?
    /// The most bytes that its stored responses may take; nil: no limit of its own.
    package var cacheLimit: ByteCount?
    /// The most bytes that its open writes may take; nil: no limit of its own.
    package var dataLimit: ByteCount?
    /// The kind of messages that it receives; nil for an API.
    package var receiver: ReceiverKind?
    /// True if its host may be a loopback address; always true for a declared upstream.
    package private(set) var allowsLoopback = true

    package init(
        name: String, origin: OriginAddress, gateway: String? = nil, policy: CachePolicy = .offlineFirst, intercept: Bool = false,
        identity: IdentityRule = .auto, refresh: RefreshRecipe? = nil, via: String? = nil, tls: TLSSettings = TLSSettings(),
        probe: Probe? = nil, timeouts: UpstreamTimeouts = UpstreamTimeouts(), queue: QueueSettings = QueueSettings(),
        idempotency: IdempotencySettings = IdempotencySettings(), order: LaneOrder = .entity, routes: [Route] = [],
        resources: [Resource] = []
    ) {
        self.name = name
        self.origin = origin
        gatewaySettings = gateway.map { GatewaySettings(listen: $0) }
        self.policy = policy
        self.intercept = intercept
        self.identity = identity
        self.refresh = refresh
        parent = via.map { ParentSettings(url: $0) }
        self.tls = tls
        self.probe = probe
        self.timeouts = timeouts
        self.queue = queue
        self.idempotency = idempotency
        self.order = order
        self.routes = routes
        self.resources = resources
    }

    /// An undeclared host with queueable writes, named by its origin's URL (docs/reference/configuration.md#upstreams,
    /// `defaults.queue_writes`).
    init(adopting origin: OriginAddress, policy: CachePolicy, allowsLoopback: Bool) {
        self.init(name: origin.url, origin: origin, policy: policy)
        self.allowsLoopback = allowsLoopback
    }

    /// The URL of the API, which tells it apart from all others: its origin with its path.
    package var place: String { origin.url + basePath }

    /// True if a path of the origin is the API's own path or below it.
    package func covers(path: String) -> Bool { (path + "/").hasPrefix(basePath + "/") }

    /// `host:port` of the plain HTTP listener that represents the origin.
    package var gateway: String? {
        get { gatewaySettings?.listen }
        set { gatewaySettings = newValue.map { GatewaySettings(listen: $0) } }
    }

    /// Parent proxy: `http://host:port` or `socks5h://host:port`.
    package var via: String? {
        get { parent?.url }
        set { parent = newValue.map { ParentSettings(url: $0) } }
    }

    /// True if the configuration declares it.
    package var isDeclared: Bool { name != origin.url && receiver == nil }

    /// True if its resources are learned from its traffic: none is declared, and learning is not off.
    package var learnsResources: Bool { isDeclared && undeclaredResources == .learned && !resources.contains { $0.learned == nil } }
}

/// The rule that determines the owner of a response (docs/caching.md#partitions *Identity*).
package enum IdentityRule: Hashable, Sendable {
    case auto, single
    case header(String)
    case cookie(String)

    /// True if one field or cookie names the client, so that its other cookies may change.
    package var isByOneValue: Bool {
        switch self {
        case .auto, .single: false
        case .header, .cookie: true
        }
    }
}

/// The answer to a request that neither the upstream nor the cache can answer: a problem document, or a closed connection as without a proxy.
package enum MissAnswer: String, CaseIterable, Sendable, Codable { case problem, close }

/// Whether the tags of responses reach clients.
package enum TagVisibility: String, CaseIterable, Sendable, Codable { case hide, show }

/// The scope of ordering: operations of one entity, or all of one upstream.
package enum LaneOrder: String, CaseIterable, Sendable, Codable { case entity, global }

extension Upstream {
    /// True if its probe lists expected statuses, which a portal would not return.
    package var hasExpectation: Bool { probe?.expect.isEmpty == false }
}

/// A safe request that checks whether the upstream itself is reachable (docs/outbox.md#reachability).
package struct Probe: Hashable, Sendable {
    package var path: String
    package var interval: TimeSpan
    /// Statuses of a healthy upstream; empty accepts any response.
    package var expect: [Int]

    package init(path: String, interval: TimeSpan = .seconds(10), expect: [Int] = []) {
        self.path = path
        self.interval = interval
        self.expect = expect
    }
}

/// Time limits for one upstream.
package struct UpstreamTimeouts: Hashable, Sendable {
    package var connect: TimeSpan
    /// From sending the request to the first byte of the response.
    package var firstByte: TimeSpan
    /// The longest pause within a body.
    package var idle: TimeSpan
    /// The same within a stream of events; only a route limits it.
    package var streamIdle = TimeSpan.forever

    package init(connect: TimeSpan = .seconds(2), firstByte: TimeSpan = .seconds(10), idle: TimeSpan = .seconds(60)) {
        self.connect = connect
        self.firstByte = firstByte
        self.idle = idle
    }
}

/// Verification of the upstream's certificate, which cannot be disabled.
package struct TLSSettings: Hashable, Sendable {
    package var caFile: String?
    package var minVersion: String
    package var clientCert: String?
    package var clientKey: String?

    package init(caFile: String? = nil, minVersion: String = "1.2", clientCert: String? = nil, clientKey: String? = nil) {
        self.caFile = caFile
        self.minVersion = minVersion
        self.clientCert = clientCert
        self.clientKey = clientKey
    }
}

// MARK: - Queue

/// The writes that may be queued, and their handling (outbox.md).
package struct QueueSettings: Hashable, Sendable {
    package enum Uncertain: String, CaseIterable, Sendable, Codable { case ask, retry, drop }
    package enum Credentials: String, CaseIterable, Sendable, Codable { case memory, sealed }
    package enum Squash: String, CaseIterable, Sendable, Codable { case off, safe }
    /// Whether equal POSTs in quick succession that are answered 202 are one write, or each is one (docs/outbox.md#repeats).
    package enum Repeats: String, CaseIterable, Sendable, Codable { case same, each }

    package var methods: [String]
    package var maxBody: ByteCount
    package var uncertain: Uncertain
    /// Counted answers after which an operation is given up instead of being tried again (docs/outbox.md#answers).
    package var maxAttempts: Int
    package var credentials: Credentials
    package var squash: Squash
    package var repeats = Repeats.same
    /// The longest time for which a write with an unknown effect is looked for, and holds later writes to its entity.
    package var uncertainHold = TimeSpan.seconds(60)

    package init(
        methods: [String] = ["POST", "PUT", "PATCH", "DELETE", "MKCOL", "MOVE", "COPY"], maxBody: ByteCount = .mb(10),
        uncertain: Uncertain = .ask,
        maxAttempts: Int = 10, credentials: Credentials = .memory, squash: Squash = .off
    ) {
        self.methods = methods
        self.maxBody = maxBody
        self.uncertain = uncertain
        self.maxAttempts = maxAttempts
        self.credentials = credentials
        self.squash = squash
    }
}

/// The upstream's support for idempotency keys (docs/outbox.md#keys).
package struct IdempotencySettings: Hashable, Sendable {
    package enum Format: String, CaseIterable, Sendable, Codable { case quoted, raw }
    package enum Honoured: String, CaseIterable, Sendable, Codable { case yes, no, unknown }

    package var header: String
    package var format: Format
    package var honoured: Honoured
    /// The time for which the upstream remembers a key, from the first send.
    package var ttl: TimeSpan
    /// The time for which an unanswered request may still take effect.
    package var maxProcessing: TimeSpan

    package init(
        header: String = "Idempotency-Key", format: Format = .quoted, honoured: Honoured = .unknown, ttl: TimeSpan = .hours(24),
        maxProcessing: TimeSpan = .seconds(30)
    ) {
        self.header = header
        self.format = format
        self.honoured = honoured
        self.ttl = ttl
        self.maxProcessing = maxProcessing
    }
}

// MARK: - Budget

/// How many requests an upstream may get (docs/caching.md#budgets).
package struct RateLimitRule: Hashable, Sendable {
    /// Requests within `per`; nil: only what the upstream announces.
    package var requests: Int?
    package var per = TimeSpan.minutes(1)

    package init(requests: Int? = nil, per: TimeSpan = .minutes(1)) {
        self.requests = requests
        self.per = per
    }
}

/// Whether the connection to an upstream is metered.
package enum MeteredRule: String, CaseIterable, Hashable, Sendable {
    /// As NetworkManager says.
    case auto
    case yes = "true"
    case no = "false"
}

/// The purpose of a request, by which it keeps away from the rest of a budget.
package enum RequestPurpose: Hashable, Sendable, CaseIterable {
    /// A client waits for it.
    case live
    /// A queued write.
    case replay
    /// A refresh that no client waits for.
    case refresh
    case pull, prefetch

    /// The part of the budget in percent that is left to others.
    package var reservePercent: Int {
        switch self {
        case .live, .replay: 0
        case .refresh: 20
        case .pull, .prefetch: 50
        }
    }
}

/// A span of local time that recurs each day, `01:00-06:00`; it may contain midnight (docs/caching.md#budgets).
package struct DayHours: Hashable, Sendable, CustomStringConvertible {
    private static let minutesOfDay = 24 * 60

    /// Minutes since midnight, the first one inclusive, the last one not.
    private let from: Int
    private let to: Int

    /// Parses `HH:MM-HH:MM`; nil for anything else, and for an empty span.
    package init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false).map { part -> Int? in
            let numbers = part.split(separator: ":", omittingEmptySubsequences: false)
            guard numbers.count == 2, numbers.allSatisfy({ $0.utf8.count == 2 && $0.utf8.allSatisfy { (48...57).contains($0) } }),
                let hour = Int(numbers[0]), let minute = Int(numbers[1]), minute < 60, hour < 24 || hour == 24 && minute == 0
            else { return nil }
            return hour * 60 + minute
        }
        guard parts.count == 2, let from = parts[0], let to = parts[1], from != to, from < Self.minutesOfDay else { return nil }
        (self.from, self.to) = (from, to)
    }

    /// True if the span contains this minute of the day.
    package func contains(minute: Int) -> Bool {
        from < to ? (from..<to).contains(minute) : minute >= from || minute < to
    }

    package var description: String { "\(Self.text(from))-\(Self.text(to))" }

    private static func text(_ minute: Int) -> String {
        [minute / 60, minute % 60].map { $0 < 10 ? "0\($0)" : "\($0)" }.joined(separator: ":")
    }
}

/// The origins of pages that may read Rockpool's own replies for one upstream (docs/reference/configuration.md#upstreams, `cors`).
package enum CrossOriginRule: Hashable, Sendable {
    /// The origins that the upstream itself has allowed.
    case remembered
    /// No page of another origin.
    case off
    /// These origins, serialised as in the field `Origin`.
    case origins([String])
}
