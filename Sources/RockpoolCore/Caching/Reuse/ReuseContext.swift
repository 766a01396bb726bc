// The inputs of a reuse decision.

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
