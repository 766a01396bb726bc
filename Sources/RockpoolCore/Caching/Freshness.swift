// How long a stored response is fresh, and how old it is (RFC 9111 §4.2). Kept as a value, so that `explain` can show the arithmetic.

/// The arithmetic of one response at one moment.
package struct Freshness: Hashable, Sendable {
    /// Where the lifetime comes from, in the order they are asked.
    package enum Source: String, CaseIterable, Sendable, Codable {
        case sMaxAge = "s-maxage"
        case maxAge = "max-age"
        case expires
        /// The category's ttl.
        case assigned
        /// A tenth of the time since the last modification.
        case heuristic
        /// Nothing says anything: stale on arrival.
        case none
    }

    /// How long from its origination; never negative.
    package let lifetime: TimeSpan
    /// `current_age`; never negative, also when the clock went back.
    package let age: TimeSpan
    package let source: Source

    package init(lifetime: TimeSpan, age: TimeSpan, source: Source) {
        self.lifetime = lifetime
        self.age = age
        self.source = source
    }

    /// What is left; negative by how stale it is.
    package var remaining: TimeSpan { lifetime - age }
    package var isFresh: Bool { lifetime > age }
    /// How long past its lifetime; zero while fresh.
    package var staleness: TimeSpan { max(.zero, age - lifetime) }

    /// The longest lifetime a heuristic gives.
    static let heuristicCeiling = TimeSpan.days(1)

    /// How long an error that speaks of the moment, or of who asked, is served to others without asking again, whatever it says itself:
    /// an attacker who can provoke one has that long (security.md §3, *CPDoS*).
    package static let errorCeiling = TimeSpan.seconds(10)

    /// How far in the future a response may have come without the clock having been set back since.
    package static let clockTolerance = TimeSpan.seconds(10)

    /// The freshness of `stored` at `now`. One that came in the future, by a clock that was set back, has an age that nobody knows: it is
    /// asked about, or it would stay fresh until the clock is there again.
    package static func of(_ stored: StoredResponse, now: Timestamp) -> Freshness {
        if stored.responseTime - now > clockTolerance { return Freshness(lifetime: .zero, age: stored.validity.initialAge, source: .none) }
        var (lifetime, source) = lifetime(of: stored)
        if StatusCode.isPassingError(stored.head.status) { lifetime = min(lifetime, stored.validity.initialAge + errorCeiling) }
        return Freshness(lifetime: max(.zero, lifetime), age: age(of: stored, now: now), source: source)
    }

    private static func age(of stored: StoredResponse, now: Timestamp) -> TimeSpan {
        stored.validity.initialAge + max(.zero, now - stored.responseTime)
    }

    private static func lifetime(of stored: StoredResponse) -> (TimeSpan, Source) {
        let validity = stored.validity
        let directives = validity.directives
        // `s-maxage` is for shared caches; a private response is kept as a private cache keeps it.
        if let sMaxAge = directives.sMaxAge, directives.isPrivate != .all { return (sMaxAge, .sMaxAge) }
        if let maxAge = directives.maxAge { return (maxAge, .maxAge) }
        if let expires = validity.expires, !validity.isTargeted { return (expires - validity.date, .expires) }

        guard StatusCode.isHeuristicallyCacheable(stored.head.status) || directives.isPublic else { return (.zero, .none) }
        if let assigned = stored.assignedTTL {
            return directives.forbidsStale ? (.zero, .none) : (assigned, .assigned)
        }
        guard let lastModified = validity.lastModified, lastModified < validity.date else { return (.zero, .none) }
        let tenth = TimeSpan(milliseconds: (validity.date - lastModified).milliseconds / 10)
        return (min(tenth, heuristicCeiling), .heuristic)
    }
}
