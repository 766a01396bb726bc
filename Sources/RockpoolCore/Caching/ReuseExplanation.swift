// A reuse decision as text for `explain`.
package import HTTPTypes

extension Reuse {
    /// The variant the decision refers to; nil when none is used.
    package var selected: Int? {
        switch self {
        case .fresh(let index, _), .stale(let index, _, _), .validate(let index, _, _, _), .complete(let index, _): index
        case .none, .gatewayTimeout: nil
        }
    }

    /// The fields that would replace the request's own conditions and range; empty when the request is forwarded unchanged.
    package var conditionals: HTTPFields {
        switch self {
        case .validate(_, _, let fields, _), .complete(_, let fields): fields
        case .fresh, .stale, .none, .gatewayTimeout: [:]
        }
    }

    /// The decision in one word.
    package var word: String {
        switch self {
        case .fresh: "fresh"
        case .stale: "stale"
        case .validate: "validate"
        case .complete: "complete"
        case .none: "forward"
        case .gatewayTimeout: "gateway-timeout"
        }
    }

    /// The reason, by the name that `Cache-Status` and the trace use.
    package var reason: String {
        switch self {
        case .fresh(_, let freshness): freshness.source.rawValue
        case .stale(_, _, let reason): reason.detail
        case .validate(_, _, _, let reason): reason.rawValue
        case .complete: NoReuse.partial.rawValue
        case .none(let reason), .gatewayTimeout(let reason): reason.rawValue
        }
    }

    /// The reason as a clause to follow "because".
    /// - Parameters:
    ///   - stored: The response that the decision refers to; nil without one.
    ///   - doubt: Why it is validated although neither it nor a write demands that; nil where nothing but a write does.
    package func why(of stored: StoredResponse?, doubt: String? = nil) -> String {
        switch self {
        case .fresh: "it is fresh and nothing objects"
        case .stale(_, _, let reason): reason.words
        case .validate(_, _, _, .noCache):
            if stored?.isReplacedByOwnWrite == true {
                "an own write has changed what it represents"
            } else if stored?.lastingDirectives.noCache == .all {
                "the response says no-cache"
            } else {
                doubt ?? "an unsafe request has invalidated it"
            }
        case .validate(_, _, _, let reason): reason.words
        case .complete: "only its beginning is stored"
        case .none(let reason), .gatewayTimeout(let reason): reason.words
        }
    }

    /// The effect on a request received now.
    /// - Parameter stored: The response that the decision refers to; nil without one.
    package func next(of stored: StoredResponse?) -> String {
        switch self {
        case .fresh: "served from the store; nothing is sent"
        case .stale(_, _, .staleWhileRevalidate(refreshBehind: true)): "served from the store although stale, and refreshed behind"
        case .stale: "served from the store although stale; nothing is sent"
        case .validate(_, _, let conditionals, _):
            if !conditionals.isEmpty {
                "the upstream is asked whether it still holds, with \(conditionals.names)"
            } else if stored?.validity.hasValidator == true {
                "fetched anew: its validator may not cover what a write has changed"
            } else {
                "fetched anew: it has no validator to ask with"
            }
        case .complete(_, let fields): "the upstream is asked for the rest, with \(fields.names)"
        case .none: "forwarded to the upstream as it came"
        case .gatewayTimeout: "answered 504: nothing may be sent"
        }
    }
}

extension HTTPFields {
    fileprivate var names: String { map(\.name.rawName).joined(separator: " and ") }
}

extension StoredResponse {
    /// True for a copy that is fetched anew because a write through this proxy has made it out of date.
    fileprivate var isReplacedByOwnWrite: Bool { ownWrite != nil && (isInvalidated || isDirty) }
}

extension Reuse.StaleReason {
    fileprivate var words: String {
        switch self {
        case .offline: "the upstream is unreachable and its offline window is open"
        case .variant: "the upstream is unreachable, and nothing nearer to what the request selects is stored"
        case .staleWhileRevalidate: "it is within the window for serving stale while revalidating (RFC 5861 §3)"
        case .budget: "the request budget of the upstream is spent"
        case .maxStale: "the request accepts stale responses (max-stale)"
        case .cacheOnly: "the strategy never asks the upstream"
        }
    }
}

extension Reuse.ValidationReason {
    fileprivate var words: String {
        switch self {
        case .stale: "it is stale"
        case .noCache: "the response says no-cache"
        case .requestNoCache: "the request says no-cache"
        case .requestMaxAge: "it is older than the request's max-age"
        case .requestMinFresh: "it will not stay fresh as long as the request's min-fresh"
        case .networkFirst: "the strategy asks the upstream whenever it can"
        }
    }
}

extension NoReuse {
    fileprivate var words: String {
        switch self {
        case .uriMiss: "nothing is stored for the URI"
        case .varyMiss: "what is stored was selected by other request fields (Vary)"
        case .partial: "only a part of it is stored"
        case .method: "the method is not one the cache answers"
        case .bypass: "the strategy does not use the store"
        case .requestBody: "the request has a body that is no part of the key"
        case .methodOverride: "a field of the request may make it another method"
        case .requestNoStore: "the request says no-store"
        case .originCondition: "only the origin can judge If-Match and If-Unmodified-Since"
        case .requestDirective: "the request's directives rule out what is stored, and it may not be forwarded"
        case .stale: "what is stored is stale, and the request may not be forwarded"
        case .offlineWindow: "it was stored longer ago than its category may be served offline"
        }
    }
}
