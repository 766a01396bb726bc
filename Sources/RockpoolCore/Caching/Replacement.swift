// Whether an error may take the place of a good copy (RFC 9111 §3, §4.3.3; design §5).

/// The decision about a response that could be stored where others are.
///
/// Storing is always a cache's choice (RFC 9111 §3), and while the upstream is away the last good copy is worth more than the error
/// after it: selection goes to the latest response, so one that is stored hides the copy even when its own `Vary` is another. Hence
/// - 404 and 410 with freshness of their own replace: the origin says that the resource is gone, and for how long it stands by that.
///   Without it they may be a deployment's slip, and the copy stays, to be validated.
/// - 5xx, 401, 403, 407, 429 and the other 4xx never do, not even with freshness: they speak of the moment or of who asked.
/// - 2xx and 3xx do: they are no errors. (A redirect to another host is `PortalSuspicion`'s.)
package enum Replacement: Hashable, Sendable {
    case allowed
    /// The copy stays and the error is relayed; why.
    case refused(detail: String)

    /// - Parameter stored: Every variant of the key, in the partition the response would go to.
    package static func decide(_ response: ResponseHead, stored: [StoredResponse], receivedAt: Timestamp) -> Replacement {
        guard response.status >= 400, stored.contains(where: { (200...299).contains($0.head.status) }) else { return .allowed }
        guard response.status == 404 || response.status == 410 else {
            return .refused(detail: "a \(response.status) does not replace a good copy")
        }
        let candidate = StoredResponse(head: response, requestTime: receivedAt, responseTime: receivedAt)
        let isFresh =
            candidate.validity.hasExplicitFreshness && candidate.directives.noCache != .all
            && Freshness.of(candidate, now: receivedAt).isFresh
        return isFresh ? .allowed : .refused(detail: "a \(response.status) without freshness of its own does not replace a good copy")
    }
}
