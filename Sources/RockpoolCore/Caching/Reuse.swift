// Decides how a request is served from stored responses (RFC 9111 §4, §5.2.1; RFC 5861 §3; RFC 8246; docs/caching.md#reuse).
package import HTTPTypes

/// The decision about one request (RFC 9111 §4, docs/architecture.md#rules). Indices refer to the given candidates.
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
    /// The staleness up to which a response may be served in place of an error, whatever the response says of it; nil: as it says.
    package var staleOnError: TimeSpan?
    package var hasBody: Bool
    /// True if the route caches by the request's body, which permits serving methods other than GET and HEAD.
    package var cachesByBody: Bool
    /// True if `Authorization` alone names the client's partition: other secret fields select within it, as `Vary` says.
    package var isByAuthorization: Bool

    package init(
        policy: CachePolicy = .standard, strategy: Strategy = .cacheFirst, offlineWindow: TimeSpan = .forever, isReachable: Bool = true,
        staleOnError: TimeSpan? = nil, hasBody: Bool = false, cachesByBody: Bool = false, isByAuthorization: Bool = false
    ) {
        self.policy = policy
        self.strategy = strategy
        self.offlineWindow = offlineWindow
        self.isReachable = isReachable
        self.staleOnError = staleOnError
        self.hasBody = hasBody
        self.cachesByBody = cachesByBody
        self.isByAuthorization = isByAuthorization
    }

    /// True if `stored` is recent enough to be served in place of the upstream. After the clock was set back, no response counts as too
    /// old.
    func isWithinWindow(_ stored: StoredResponse, now: Timestamp) -> Bool { now - stored.responseTime <= offlineWindow }
}

extension Reuse {
    /// The decision for `request`, given every variant stored under its key in the partitions it may read.
    package static func decide(candidates: [StoredResponse], request: RequestHead, context: ReuseContext, now: Timestamp) -> Reuse {
        let wishes = CacheControl(request: request.fields)
        let neverSends = wishes.onlyIfCached || context.strategy == .cacheOnly
        if let reason = obstacle(request: request, wishes: wishes, context: context, neverSends: neverSends) {
            return neverSends ? .gatewayTimeout(reason) : .none(reason)
        }
        guard let index = selected(among: candidates, request: request, context: context) else {
            if let variant = substitute(among: candidates, request: request, context: context, now: now) { return variant }
            let reason = shortcoming(of: candidates, request: request)
            if neverSends { return .gatewayTimeout(reason) }
            return completion(among: candidates, request: request, wishes: wishes, context: context) ?? .none(reason)
        }
        let question = ReuseQuestion(
            stored: candidates[index], freshness: .of(candidates[index], now: now), wishes: wishes, context: context,
            isWithinWindow: context.isWithinWindow(candidates[index], now: now))
        switch question.verdict {
        case .fresh: return .fresh(index, question.freshness)
        case .stale(let reason): return .stale(index, question.freshness, reason)
        case .validate(let reason):
            if neverSends { return .gatewayTimeout(reason.unusable) }
            // A conditional request may return a whole new representation where the client needs only a few bytes.
            if candidates[index].part != nil { return .none(reason.unusable) }
            // The validator of a copy from before an own write may cover its content only, and the copy is not what it names any more. A
            // copy that a write nearby has marked is not invalidated: its validator is the upstream's.
            let isOwnWrites = candidates[index].ownWrite != nil && candidates[index].isInvalidated
            let conditionals = isOwnWrites ? [:] : Revalidation.conditionals(candidates: candidates, selected: index)
            return .validate(index, question.freshness, conditionals: conditionals, reason: reason)
        case .none(let reason): return neverSends ? .gatewayTimeout(reason) : .none(reason)
        }
    }

    /// The reason not to use the cache that does not depend on the stored responses.
    private static func obstacle(
        request: RequestHead, wishes: CacheControl, context: ReuseContext, neverSends: Bool
    ) -> NoReuse? {
        if context.strategy == .networkOnly { return .bypass }
        if !context.cachesByBody {
            guard request.method == .get || request.method == .head else { return .method }
            if context.hasBody { return .requestBody }
        }
        if UnkeyedField.replacesMethod(in: request.fields) { return .methodOverride }
        // While the upstream is reachable these requests are forwarded: the response is not stored, and only the origin can evaluate these
        // conditions.
        guard context.isReachable, !neverSends else { return nil }
        if wishes.noStore { return .requestNoStore }
        if request.fields.contains(.ifMatch) || request.fields.contains(.ifUnmodifiedSince) { return .originCondition }
        return nil
    }
}

/// One selected response and one request, from which the verdict follows.
private struct ReuseQuestion {
    enum Verdict {
        case fresh
        case stale(Reuse.StaleReason)
        case validate(Reuse.ValidationReason)
        case none(NoReuse)
    }

    let stored: StoredResponse
    let freshness: Freshness
    let wishes: CacheControl
    let context: ReuseContext
    let isWithinWindow: Bool

    private var directives: CacheControl { stored.directives }
    private var isOfflineFirst: Bool { context.policy == .offlineFirst }

    var verdict: Verdict {
        if context.strategy == .cacheOnly { return freshness.isFresh && directives.noCache != .all ? .fresh : .stale(.cacheOnly) }
        if !context.isReachable && isOfflineFirst { return offline }
        switch context.strategy {
        case .networkFirst where context.isReachable: return networkFirst
        case .staleWhileRevalidate: return staleWhileRevalidate
        default: return cacheFirst
        }
    }

    /// Unreachable, and the operator permits stale responses: the directives of the response and of the request are ignored.
    private var offline: Verdict {
        if freshness.isFresh && directives.noCache != .all { return .fresh }
        return isWithinWindow ? .stale(.offline) : .none(.offlineWindow)
    }

    /// Revalidates whenever possible, except a fresh immutable response, which revalidation cannot change (RFC 8246 §2).
    private var networkFirst: Verdict {
        if directives.immutable, objection == nil { return .fresh }
        return .validate(objection ?? .networkFirst)
    }

    private var staleWhileRevalidate: Verdict {
        guard let objection else { return .fresh }
        let isForbidden =
            wishes.noCache == .all || (!isOfflineFirst && directives.forbidsStale) || (stored.ownWrite != nil && context.isReachable)
        guard isWithinWindow, !isForbidden else { return cacheFirst(objection) }
        return .stale(.staleWhileRevalidate(refreshBehind: !wishes.onlyIfCached))
    }

    private var cacheFirst: Verdict { objection.map(cacheFirst) ?? .fresh }

    /// The response is not usable as it is: served stale if RFC 9111 §4.2.4 permits, else revalidated.
    private func cacheFirst(_ objection: Reuse.ValidationReason) -> Verdict {
        guard objection == .stale, !directives.forbidsStale else { return .validate(objection) }
        if wishes.maxAge == nil, wishes.minFresh == nil {
            if let window = directives.staleWhileRevalidate, window > .zero, freshness.staleness <= window {
                return .stale(.staleWhileRevalidate(refreshBehind: !wishes.onlyIfCached))
            }
            if !context.isReachable && isWithinWindow { return .stale(.offline) }
        }
        return isWithinMaxStale ? .stale(.maxStale) : .validate(.stale)
    }

    /// The reason not to serve the response as fresh; nil without one.
    private var objection: Reuse.ValidationReason? {
        if wishes.noCache != .absent { return .requestNoCache }
        if directives.noCache == .all { return .noCache }
        if !freshness.isFresh { return .stale }
        // The age counts from the response's origination, but it can be zero: `max-age=0` always revalidates.
        if let limit = wishes.maxAge, limit == .zero || freshness.age > limit, !isPastMaxAgeAllowed(limit) { return .requestMaxAge }
        if let margin = wishes.minFresh, freshness.remaining < margin { return .requestMinFresh }
        return nil
    }

    /// `max-stale` relaxes `max-age` (RFC 9111 §5.2.1.1), unless the response forbids being served stale.
    private func isPastMaxAgeAllowed(_ limit: TimeSpan) -> Bool {
        guard let maxStale = wishes.maxStale, !directives.forbidsStale else { return false }
        return freshness.age - limit <= maxStale
    }

    /// Staleness counts from the response's own lifetime or from the request's `max-age`, whichever is shorter.
    private var isWithinMaxStale: Bool {
        guard let maxStale = wishes.maxStale, wishes.minFresh == nil else { return false }
        let lifetime = wishes.maxAge.map { min($0, freshness.lifetime) } ?? freshness.lifetime
        return freshness.age - lifetime <= maxStale
    }
}

/// Selects the stored response for a request: by `Vary`, by the bytes it holds and by its date (RFC 9111 §3.4, §4, §4.1).
extension Reuse {
    /// The most recent variant that matches the request by `Vary` and holds the requested bytes (RFC 9111 §4, §4.1).
    ///
    /// While the upstream is reachable, the `Vary` of the newest candidate also applies to the older ones, and a type for which the request
    /// has no room is not served; otherwise it is better than none. A variant that was selected by the request's own codings goes before one
    /// that only suits them.
    static func selected(among candidates: [StoredResponse], request: RequestHead, context: ReuseContext = ReuseContext()) -> Int? {
        let latest = context.isReachable && candidates.count > 1 ? newest(among: candidates) { _ in true }.map { candidates[$0] } : nil
        let suits = { (stored: StoredResponse) in
            Vary.matches(stored: stored, request: request) && !(stored.isHeadOnly && context.isReachable)
                && (PartialResponse.holds(stored, for: request) || !context.isReachable && isHeadOfPart(stored, request))
                && (!context.isReachable || CrossOriginReply.mayServe(stored, to: request))
                && latest.map { !Vary.isOutdated(stored, by: $0) } ?? true
        }
        let permits = { (stored: StoredResponse) in suits(stored) && Vary.permitsType(of: stored, request) }
        let isOwn = { (stored: StoredResponse) in Vary.matches(stored: stored, request: request, isExact: true) && permits(stored) }
        let own = candidates.count > 1 ? newest(among: candidates, where: isOwn) : nil
        let permitted = own ?? newest(among: candidates, where: permits)
        let best = permitted ?? (context.isReachable ? nil : newest(among: candidates, where: suits))
        guard best == nil, let language = Vary.onlyLanguage(among: candidates, request: request) else { return best }
        return newest(among: candidates) { $0.part == nil && $0.head.fields.value(of: "content-language")?.lowercased() == language }
    }

    /// While the upstream is unreachable: a response that differs from the requested variant only in coding, language or media type, in a
    /// coding that the client accepts or that this cache can decode. Of several, the one in the language that the client prefers, then one
    /// that needs no decoding, then the newest. A response in a language that the client does not name is better than none.
    static func substitute(among candidates: [StoredResponse], request: RequestHead, context: ReuseContext, now: Timestamp) -> Reuse? {
        guard !context.isReachable, context.policy == .offlineFirst else { return nil }
        let isFit = { (stored: StoredResponse) in
            stored.part == nil && (200...299).contains(stored.head.status) && context.isWithinWindow(stored, now: now)
                && Vary.mayStandIn(stored, for: request)
        }
        let rank = { (stored: StoredResponse) in
            (LanguagePreference.rank(of: stored, for: request), ContentCoding.isAccepted(stored.head.fields, by: request) ? 1 : 0)
        }
        guard let best = candidates.filter(isFit).map(rank).max(by: <) else { return nil }
        let index = newest(among: candidates) { isFit($0) && rank($0) == best }
        return index.map { .stale($0, .of(candidates[$0], now: now), .variant) }
    }

    /// True if a part has the fields of the whole that a HEAD wants: then it answers while the upstream is unreachable.
    private static func isHeadOfPart(_ stored: StoredResponse, _ request: RequestHead) -> Bool {
        request.method == .head && stored.part?.length != nil
    }

    private static func newest(among candidates: [StoredResponse], where isSuitable: (StoredResponse) -> Bool) -> Int? {
        var best: Int?
        for index in candidates.indices where isSuitable(candidates[index]) {
            if let best, !isNewer(candidates[index], than: candidates[best]) { continue }
            best = index
        }
        return best
    }

    /// The reason why no candidate is usable.
    static func shortcoming(of candidates: [StoredResponse], request: RequestHead) -> NoReuse {
        if candidates.allSatisfy(\.isHeadOnly) { return .uriMiss }
        return candidates.contains { $0.part != nil && Vary.matches(stored: $0, request: request) } ? .partial : .varyMiss
    }

    /// Completes a stored beginning (RFC 9111 §3.4), fresh or not: the request carries its strong tag and so validates it.
    static func completion(
        among candidates: [StoredResponse], request: RequestHead, wishes: CacheControl, context: ReuseContext
    ) -> Reuse? {
        let conditions = [HTTPField.Name.ifNoneMatch, .ifModifiedSince]
        guard request.method == .get, !context.hasBody, wishes.noCache == .absent, !conditions.contains(where: request.fields.contains),
            let index = newest(
                among: candidates, where: { Vary.matches(stored: $0, request: request) && PartialResponse.completion(of: $0) != nil }),
            RangeReply.ranges(request: request, stored: candidates[index].head) == nil
        else { return nil }
        return PartialResponse.completion(of: candidates[index]).map { .complete(index, fields: $0) }
    }

    private static func isNewer(_ a: StoredResponse, than b: StoredResponse) -> Bool {
        // The result of an own write has this clock's date; a response that was requested after it is newer, whatever its origin's clock.
        if (a.ownWrite == nil) != (b.ownWrite == nil) {
            let (own, other) = (a.includesWritesUntil, b.includesWritesUntil)
            return own == other ? a.ownWrite == nil : own > other
        }
        return (a.validity.date, a.responseTime) > (b.validity.date, b.responseTime)
    }
}

extension CrossOriginReply {
    /// False if a page could not read the stored response, because it answered a request without `Origin` and names no permission for this
    /// one. Such a response is served only while the upstream is unreachable.
    static func mayServe(_ stored: StoredResponse, to request: RequestHead) -> Bool {
        guard let origin = request.fields.value(of: "origin"), stored.requestFields.value(of: "origin") == nil else { return true }
        let allowed = stored.head.fields.value(of: "access-control-allow-origin")
        return allowed == "*" || allowed == origin
    }
}
