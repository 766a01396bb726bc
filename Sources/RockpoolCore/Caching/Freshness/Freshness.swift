// The freshness lifetime and the age of a stored response (RFC 9111 §4.2), kept as a value so that `explain` can show the arithmetic.

/// The freshness of one response at one time.
package struct Freshness: Hashable, Sendable {
    /// The source of the lifetime, in order of precedence.
    package enum Source: String, CaseIterable, Sendable, Codable {
        case sMaxAge = "s-maxage"
        case maxAge = "max-age"
        case expires
        /// A bound of the route's ttl, or its default in place of what the response says.
        case route
        /// The ttl that the route or the category gives to a response that states none.
        case assigned
        /// A tenth of the time since the last modification.
        case heuristic
        /// No source: the response is stale on arrival.
        case none
    }

    /// The time from origination until it becomes stale; never negative.
    package let lifetime: TimeSpan
    /// `current_age`; never negative, even after the clock was set back.
    package let age: TimeSpan
    package let source: Source

    package init(lifetime: TimeSpan, age: TimeSpan, source: Source) {
        self.lifetime = lifetime
        self.age = age
        self.source = source
    }

    /// The remaining time; negative by the staleness.
    package var remaining: TimeSpan { lifetime - age }
    package var isFresh: Bool { lifetime > age }
    /// The time since it became stale; zero while fresh.
    package var staleness: TimeSpan { max(.zero, age - lifetime) }

    /// The longest heuristic lifetime.
    static let heuristicCeiling = TimeSpan.days(1)

    /// The longest lifetime of an error that is transient or depends on the client, whatever its own fields allow: an attacker who can
    /// provoke such an error denies the resource to others for that long (docs/security-model.md#poisoned-errors).
    package static let errorCeiling = TimeSpan.seconds(10)

    /// The amount by which a response may have been received in the future before the clock is assumed to have been set back.
    package static let clockTolerance = TimeSpan.seconds(10)

    /// The freshness of `stored` at `now`. A response received in the future, because the clock was set back, has an unknown age and counts
    /// as stale; otherwise it would stay fresh until the clock has caught up.
    package static func of(_ stored: StoredResponse, now: Timestamp) -> Freshness {
        if stored.responseTime - now > clockTolerance { return Freshness(lifetime: .zero, age: stored.validity.initialAge, source: .none) }
        var (lifetime, source) = stored.lifetimeRule.map { ruled(stored, by: $0) } ?? Self.lifetime(of: stored)
        if StatusCode.isPassingError(stored.head.status) { lifetime = min(lifetime, stored.validity.initialAge + errorCeiling) }
        return Freshness(lifetime: max(.zero, lifetime), age: age(of: stored, now: now), source: source)
    }

    private static func age(of stored: StoredResponse, now: Timestamp) -> TimeSpan {
        stored.validity.initialAge + max(.zero, now - stored.responseTime)
    }

    /// The lifetime within the bounds of a route.
    private static func ruled(_ stored: StoredResponse, by rule: LifetimeRule) -> (TimeSpan, Source) {
        let (own, source) = Self.lifetime(of: stored)
        let isStated = [.sMaxAge, .maxAge, .expires].contains(source)
        var lifetime = own
        if rule.overrides, own <= .zero || stored.validity.directives.noCache == .all, let fallback = rule.fallback { lifetime = fallback }
        let mayBeLonger = rule.overrides || !isStated && !stored.validity.directives.forbidsStale
        // No bound makes a response fresh whose status says nothing about the next request.
        if mayBeLonger, isStated || StatusCode.isHeuristicallyCacheable(stored.head.status) {
            lifetime = max(lifetime, rule.least ?? lifetime)
        } else if !isStated {
            lifetime = own
        }
        lifetime = min(lifetime, rule.most ?? lifetime)
        return lifetime == own ? (own, source) : (lifetime, .route)
    }

    private static func lifetime(of stored: StoredResponse) -> (TimeSpan, Source) {
        let validity = stored.validity
        let directives = validity.directives
        // `s-maxage` applies to shared caches; a private response is stored as in a private cache.
        if let sMaxAge = directives.sMaxAge, directives.isPrivate != .all { return (sMaxAge, .sMaxAge) }
        if let maxAge = directives.maxAge { return (maxAge, .maxAge) }
        if let expires = validity.expires, !validity.isTargeted { return (expires - validity.date, .expires) }

        guard StatusCode.isHeuristicallyCacheable(stored.head.status) || directives.isPublic else { return (.zero, .none) }
        if let assigned = stored.lifetimeRule?.fallback ?? stored.assignedTTL {
            return directives.forbidsStale ? (.zero, .none) : (assigned, .assigned)
        }
        guard let lastModified = validity.lastModified, lastModified < validity.date else { return (.zero, .none) }
        let tenth = TimeSpan(milliseconds: (validity.date - lastModified).milliseconds / 10)
        return (min(tenth, heuristicCeiling), .heuristic)
    }
}
