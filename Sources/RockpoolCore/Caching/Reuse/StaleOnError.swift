// Decides whether a stored response is served after the upstream failed (RFC 5861 §4, RFC 9111 §4.2.4 and §4.3.3,
// docs/caching.md#stale-responses).

/// Stale responses served in place of errors.
package enum StaleOnError {
    /// True if `stored`, fresh or not, may be served instead of the failure.
    package static func permits(
        _ stored: StoredResponse, request: RequestHead, failure: UpstreamFailure, context: ReuseContext, now: Timestamp
    ) -> Bool {
        let isOfflineFirst = context.policy == .offlineFirst
        let isWithinWindow = context.isWithinWindow(stored, now: now)
        switch failure {
        case .untrusted: return false
        case .unreachable where isOfflineFirst && isWithinWindow: return true
        // 429 is no fault of the server, but a copy serves its client better too (docs/caching.md#budgets).
        case .status(let status) where !StatusCode.isServerError(status) && status != 429: return false
        case .unreachable, .status: break
        }

        let wishes = CacheControl(request: request.fields)
        guard context.strategy != .networkOnly, wishes.noCache == .absent, !wishes.noStore || isOfflineFirst else { return false }
        let freshness = Freshness.of(stored, now: now)
        // A copy with an own write counts as invalidated, so that it is fetched anew; that says nothing about a server that fails.
        let directives = stored.ownWrite != nil && isOfflineFirst ? stored.lastingDirectives : stored.directives
        if directives.forbidsStale && !(freshness.isFresh && directives.noCache != .all) { return false }
        if freshness.isFresh && allows(freshness, wishes: wishes) { return true }
        for window in [directives.staleIfError, wishes.staleIfError, context.staleOnError] {
            if let window, freshness.staleness <= window { return true }
        }
        guard isWithinWindow, allows(freshness, wishes: wishes) else { return false }
        switch failure {
        case .unreachable: return true
        // A failing server counts as unreachable (§4.3.3), within the time that the category may be served offline.
        case .status: return isOfflineFirst
        case .untrusted: return false
        }
    }

    /// True if the request's limits on age are met, or may be exceeded because of `max-stale`.
    private static func allows(_ freshness: Freshness, wishes: CacheControl) -> Bool {
        if let margin = wishes.minFresh, freshness.remaining < margin { return false }
        guard let limit = wishes.maxAge else { return true }
        return freshness.age - min(limit, freshness.lifetime) <= wishes.maxStale ?? .zero
    }
}
