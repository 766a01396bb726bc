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
        /// The request budget of the upstream is spent.
        case budget
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
            case .budget: "budget"
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
