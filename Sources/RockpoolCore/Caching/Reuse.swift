// How a stored response may be used for a request: the possible decisions and their reasons (RFC 9111 §4, design §4.1).
package import HTTPTypes

/// The decision about one request. Indices are into the candidates given.
package enum Reuse: Hashable, Sendable {
    /// Serve it; nothing is sent.
    case fresh(Int, Freshness)
    /// Serve it although it is stale.
    case stale(Int, Freshness, StaleReason)
    /// Ask the upstream with these conditions in place of the client's; without any the whole response is fetched anew.
    case validate(Int, Freshness, conditionals: HTTPFields, reason: ValidationReason)
    /// The beginning is stored and the whole is asked for: ask for the rest with these fields in place of the client's, and combine.
    case complete(Int, fields: HTTPFields)
    /// Forward as it came.
    case none(NoReuse)
    /// Answer 504: the stored responses do not do, and nothing may be sent.
    case gatewayTimeout(NoReuse)

    /// Why a stale response is served.
    package enum StaleReason: Hashable, Sendable {
        /// The upstream is unreachable.
        case offline
        /// The upstream is unreachable, and what is stored is in another coding or language than the request would have selected.
        case variant
        /// Within a window the response or the strategy names; the upstream is asked afterwards, unless nothing may be sent.
        case staleWhileRevalidate(refreshBehind: Bool)
        /// The client takes it (`max-stale`).
        case maxStale
        /// The strategy never asks.
        case cacheOnly

        /// What `Cache-Status` gives as `detail`.
        package var detail: String {
            switch self {
            case .offline: "offline"
            case .variant: "variant"
            case .staleWhileRevalidate: "stale-while-revalidate"
            case .maxStale: "max-stale"
            case .cacheOnly: "cache-only"
            }
        }
    }

    /// Why the upstream is asked first.
    package enum ValidationReason: String, CaseIterable, Sendable, Codable {
        case stale
        /// The response's `no-cache`.
        case noCache = "no-cache"
        case requestNoCache = "request-no-cache"
        case requestMaxAge = "request-max-age"
        case requestMinFresh = "request-min-fresh"
        /// The strategy asks whenever it can.
        case networkFirst = "network-first"

        /// Why it goes forward, in the words of RFC 9211 §2.2.
        package var forward: CacheStatus.Forward {
            switch self {
            case .stale, .noCache: .stale
            case .requestNoCache, .requestMaxAge, .requestMinFresh: .request
            case .networkFirst: .bypass
            }
        }

        /// The same, where nothing may be sent, or what is stored cannot be validated.
        package var unusable: NoReuse {
            switch self {
            case .stale, .noCache, .networkFirst: .stale
            case .requestNoCache, .requestMaxAge, .requestMinFresh: .requestDirective
            }
        }
    }
}

/// Why nothing stored is used.
package enum NoReuse: String, CaseIterable, Sendable, Codable {
    case uriMiss = "uri-miss"
    case varyMiss = "vary-miss"
    /// Too small a part is stored.
    case partial
    case method
    /// The strategy does not use the store.
    case bypass
    case requestBody = "request-body"
    /// The request may be another method in truth.
    case methodOverride = "method-override"
    case requestNoStore = "request-no-store"
    /// `If-Match` or `If-Unmodified-Since`, which only the origin can judge.
    case originCondition = "origin-condition"
    /// `no-cache`, `max-age` or `min-fresh` of a request that may not be forwarded, or for a part.
    case requestDirective = "request-directive"
    /// Stale, for a request that may not be forwarded, or for a part.
    case stale
    /// Stored longer ago than its category may be served offline.
    case offlineWindow = "offline-window"

    /// Why it goes forward, in the words of RFC 9211 §2.2.
    package var forward: CacheStatus.Forward {
        switch self {
        case .uriMiss: .uriMiss
        case .varyMiss: .varyMiss
        case .partial: .partial
        case .method: .method
        case .bypass, .requestBody, .methodOverride: .bypass
        case .requestNoStore, .originCondition, .requestDirective: .request
        case .stale, .offlineWindow: .stale
        }
    }
}

/// The circumstances of one request, as far as reuse depends on them.
package struct ReuseContext: Hashable, Sendable {
    package var policy: CachePolicy
    package var strategy: Strategy
    /// How long after it was received, or last validated, an entry may stand in for its upstream.
    package var offlineWindow: TimeSpan
    package var isReachable: Bool
    package var hasBody: Bool
    /// Whether the route caches by the request's body, which lets other methods than GET and HEAD be answered.
    package var cachesByBody: Bool

    package init(
        policy: CachePolicy = .standard, strategy: Strategy = .cacheFirst, offlineWindow: TimeSpan = .forever, isReachable: Bool = true,
        hasBody: Bool = false, cachesByBody: Bool = false
    ) {
        self.policy = policy
        self.strategy = strategy
        self.offlineWindow = offlineWindow
        self.isReachable = isReachable
        self.hasBody = hasBody
        self.cachesByBody = cachesByBody
    }

    /// Whether `stored` is young enough to stand in for its upstream. A clock that went back makes nothing too old.
    func isWithinWindow(_ stored: StoredResponse, now: Timestamp) -> Bool { now - stored.responseTime <= offlineWindow }
}
