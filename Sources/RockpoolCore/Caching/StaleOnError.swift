// Stored responses when the upstream fails: whether one is served stale, and whether an error replaces it (RFC 5861 §4, RFC 9111 §4.2.4 and
// §4.3.3, docs/caching.md#stale-responses).
import HTTPTypes

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

/// The way the upstream failed.
package enum UpstreamFailure: Hashable, Sendable {
    /// No connection, or the connection failed before a response.
    case unreachable
    /// Certificate verification failed: the peer is not the upstream, and no stored response is served in its place
    /// (docs/reference/behaviour.md#offline-reads).
    case untrusted
    /// The upstream answered with this status.
    case status(Int)
}

/// The decision about a response that could replace stored ones (RFC 9111 §3, §4.3.3; docs/caching.md#good-copies).
///
/// Storing is optional for a cache (RFC 9111 §3), and while the upstream is unreachable the last good copy is worth more than a later
/// error. Selection prefers the latest response, so a stored error hides the copy even if its own `Vary` differs. Hence
/// - 404 and 410 replace the copy if they have explicit freshness and `isConfirmed` holds: the origin declares that the resource is gone,
///   and for how long. Without freshness they may result from a faulty deployment, and the copy stays, to be revalidated. Seen only once
///   they may have been provoked by that one request, or be the fault of a moment.
/// - 5xx, 401, 403, 407, 429 and the other 4xx never replace it, not even with freshness: they are transient or depend on the client.
/// - A 2xx replaces it, because it is not an error. A 204 or 205 needs explicit freshness and `isConfirmed`: a captive portal or a fault may
///   send one too. So does an empty 200 need `isConfirmed` in place of one with content, unless that one is known to be out of date.
/// - A 3xx needs explicit freshness and `isConfirmed`, because a portal redirects every request. (`PortalSuspicion` handles redirects to
///   another host.)
package enum Replacement: Hashable, Sendable {
    case allowed
    /// The copy stays and the error is relayed, for the reason in `detail`.
    case refused(detail: String)

    /// - Parameters:
    ///   - stored: Every variant of the key that the stored response would hide.
    ///   - isEmpty: True if the response is known to have no content.
    ///   - isConfirmed: False for what `needsConfirmation` and was seen for the first time.
    package static func decide(
        _ response: ResponseHead, isEmpty: Bool = false, stored: [StoredResponse], receivedAt: Timestamp, isConfirmed: Bool = true
    ) -> Replacement {
        if isEmpty, empties(response, stored: stored) {
            return isConfirmed ? .allowed : .refused(detail: "an empty 200 seen once does not replace a good copy")
        }
        guard stored.contains(where: { (200...299).contains($0.head.status) && $0.head.status != response.status }) else { return .allowed }
        switch response.status {
        case 200...203, 206...299: return .allowed
        case 204, 205, 300...399, 404, 410:
            if !isConfirmed { return .refused(detail: "a \(response.status) seen once does not replace a good copy") }
        default: return .refused(detail: "a \(response.status) does not replace a good copy")
        }
        let candidate = StoredResponse(head: response, requestTime: receivedAt, responseTime: receivedAt)
        let isFresh =
            candidate.validity.hasExplicitFreshness && candidate.directives.noCache != .all
            && Freshness.of(candidate, now: receivedAt).isFresh
        return isFresh ? .allowed : .refused(detail: "a \(response.status) without freshness of its own does not replace a good copy")
    }

    /// True if a response replaces a good copy only when it was seen more than once.
    package static func needsConfirmation(_ response: ResponseHead, isEmpty: Bool = false, stored: [StoredResponse]) -> Bool {
        switch response.status {
        case 204, 205, 300...399, 404, 410: true
        default: isEmpty && empties(response, stored: stored)
        }
    }

    /// True for a 200 in place of one with content that no write has made out of date.
    private static func empties(_ response: ResponseHead, stored: [StoredResponse]) -> Bool {
        response.status == 200
            && stored.contains { $0.head.status == 200 && $0.bodyLength > 0 && !$0.isInvalidated && $0.ownWrite == nil }
    }
}
