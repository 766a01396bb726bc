// Whether an error may take the place of a good copy (RFC 9111 §3, §4.3.3; design §5).

/// The decision about a response that could be stored where others are.
///
/// Storing is always a cache's choice (RFC 9111 §3), and while the upstream is away the last good copy is worth more than the error
/// after it: selection goes to the latest response, so one that is stored hides the copy even when its own `Vary` is another. Hence
/// - 404 and 410 with freshness of their own replace, where `isConfirmed`: the origin says that the resource is gone, and for how long it
///   stands by that. Without freshness they may be a deployment's slip, and the copy stays, to be validated. Seen once they may be the work
///   of the one request, and would replace what is everybody's.
/// - 5xx, 401, 403, 407, 429 and the other 4xx never do, not even with freshness: they speak of the moment or of who asked.
/// - A 2xx does: it is no error. One without content, 204 or 205, only with freshness of its own: a portal gives it as well as a slip.
/// - A 3xx only with freshness of its own, and only where `isConfirmed`: a portal redirects whatever is asked. (One to another host is
///   `PortalSuspicion`'s.)
package enum Replacement: Hashable, Sendable {
    case allowed
    /// The copy stays and the error is relayed; why.
    case refused(detail: String)

    /// - Parameters:
    ///   - stored: Every variant of the key, in the partition the response would go to.
    ///   - isConfirmed: Whether a redirect, or a 404 or 410 that is for others too, was seen before.
    package static func decide(
        _ response: ResponseHead, stored: [StoredResponse], receivedAt: Timestamp, isConfirmed: Bool = true
    ) -> Replacement {
        guard stored.contains(where: { (200...299).contains($0.head.status) && $0.head.status != response.status }) else { return .allowed }
        switch response.status {
        case 204, 205: break
        case 200...299: return .allowed
        case 300...399, 404, 410:
            if !isConfirmed { return .refused(detail: "a \(response.status) seen once does not replace a good copy") }
        default: return .refused(detail: "a \(response.status) does not replace a good copy")
        }
        let candidate = StoredResponse(head: response, requestTime: receivedAt, responseTime: receivedAt)
        let isFresh =
            candidate.validity.hasExplicitFreshness && candidate.directives.noCache != .all
            && Freshness.of(candidate, now: receivedAt).isFresh
        return isFresh ? .allowed : .refused(detail: "a \(response.status) without freshness of its own does not replace a good copy")
    }
}
