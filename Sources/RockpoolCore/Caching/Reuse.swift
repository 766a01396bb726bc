// The possible decisions about reusing a stored response, and their reasons (RFC 9111 §4, docs/architecture.md#rules).
package import HTTPTypes

/// The decision about one request. Indices refer to the given candidates.
package enum Reuse: Hashable, Sendable {
    /// Serve it; nothing is sent upstream.
    case fresh(Int, Freshness)
    /// Serve it although it is stale.
    case stale(Int, Freshness, StaleReason)
    /// Revalidate with these conditions in place of the client's; without any, fetch the whole response again.
    case validate(Int, Freshness, conditionals: HTTPFields, reason: ValidationReason)
    /// The beginning is stored and the whole is requested: request the rest with these fields in place of the client's, and combine.
    case complete(Int, fields: HTTPFields)
    /// Forward the request unchanged.
    case none(NoReuse)
    /// Answer 504: the stored responses are not usable, and nothing may be sent upstream.
    case gatewayTimeout(NoReuse)

    /// The reason why a stale response is served.
    package enum StaleReason: Hashable, Sendable {
        /// The upstream is unreachable.
        case offline
        /// The upstream is unreachable, and the stored response has another coding, language or media type than the requested variant.
        case variant
        /// Within a window set by the response or the strategy; the upstream is revalidated afterwards, unless nothing may be sent.
        case staleWhileRevalidate(refreshBehind: Bool)
        /// The client accepts it (`max-stale`).
        case maxStale
        /// The strategy never contacts the upstream.
        case cacheOnly

        /// The `detail` parameter of `Cache-Status`.
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

    /// The reason why the response is revalidated before use.
    package enum ValidationReason: String, CaseIterable, Sendable, Codable {
        case stale
        /// The response's `no-cache`.
        case noCache = "no-cache"
        case requestNoCache = "request-no-cache"
        case requestMaxAge = "request-max-age"
        case requestMinFresh = "request-min-fresh"
        /// The strategy revalidates whenever the upstream is reachable.
        case networkFirst = "network-first"

        /// The reason for forwarding, as a `fwd` value of RFC 9211 §2.2.
        package var forward: CacheStatus.Forward {
            switch self {
            case .stale, .noCache: .stale
            case .requestNoCache, .requestMaxAge, .requestMinFresh: .request
            case .networkFirst: .bypass
            }
        }

        /// The corresponding reason when nothing may be sent, or the stored response cannot be revalidated.
        package var unusable: NoReuse {
            switch self {
            case .stale, .noCache, .networkFirst: .stale
            case .requestNoCache, .requestMaxAge, .requestMinFresh: .requestDirective
            }
        }
    }
}

/// The reason why no stored response is used.
package enum NoReuse: String, CaseIterable, Sendable, Codable {
    case uriMiss = "uri-miss"
    case varyMiss = "vary-miss"
    /// The stored part lacks some of the requested bytes.
    case partial
    case method
    /// The strategy does not use the store.
    case bypass
    case requestBody = "request-body"
    /// The framework may treat the request as another method.
    case methodOverride = "method-override"
    case requestNoStore = "request-no-store"
    /// `If-Match` or `If-Unmodified-Since`, which only the origin can evaluate.
    case originCondition = "origin-condition"
    /// `no-cache`, `max-age` or `min-fresh` excludes the stored response, and the request may not be forwarded or the response is a part.
    case requestDirective = "request-directive"
    /// Stale, and the request may not be forwarded or the stored response is a part.
    case stale
    /// Stored longer ago than its category may be served offline.
    case offlineWindow = "offline-window"

    /// The reason for forwarding, as a `fwd` value of RFC 9211 §2.2.
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

/// The circumstances of one request that affect reuse.
package struct ReuseContext: Hashable, Sendable {
    package var policy: CachePolicy
    package var strategy: Strategy
    /// The time after receipt or last validation for which an entry may be served in place of the upstream.
    package var offlineWindow: TimeSpan
    package var isReachable: Bool
    package var hasBody: Bool
    /// True if the route caches by the request's body, which permits serving methods other than GET and HEAD.
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

    /// True if `stored` is recent enough to be served in place of the upstream. After the clock was set back, no response counts as too
    /// old.
    func isWithinWindow(_ stored: StoredResponse, now: Timestamp) -> Bool { now - stored.responseTime <= offlineWindow }
}
