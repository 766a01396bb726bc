// Decides how a request is served from stored responses (RFC 9111 §4, §5.2.1; RFC 5861 §3; RFC 8246; docs/caching.md#reuse).
import HTTPTypes

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
            if let window = directives.staleWhileRevalidate, freshness.staleness <= window {
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
