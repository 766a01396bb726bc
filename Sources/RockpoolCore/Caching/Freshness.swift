// The freshness lifetime and the age of a stored response, kept as a value so that `explain` can show the arithmetic (RFC 9111 §4.2).
package import HTTPTypes

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

/// The parsed part of the freshness arithmetic (RFC 9111 §4.2.1, §4.2.3): every term that does not depend on the current time.
package struct Validity: Hashable, Sendable {
    package let directives: CacheControl
    /// True if a targeted field set the directives, so that `Expires` is ignored (RFC 9213 §2.2).
    package let isTargeted: Bool
    /// `Date`, or the time of receipt if `Date` is missing or invalid.
    package let date: Timestamp
    /// `Expires`; nil when absent. An unreadable or repeated field counts as long past.
    package let expires: Timestamp?
    package let lastModified: Timestamp?
    /// `corrected_initial_age`: the response's age when it was received.
    package let initialAge: TimeSpan
    package let hasEntityTag: Bool
    /// The request fields that selected it, each once; nil if no request can be known to match.
    package let varyNames: [HTTPField.Name]?
    /// The stored bytes; nil when all are stored.
    package let part: ContentRange?

    init(_ head: ResponseHead, requestTime: Timestamp, responseTime: Timestamp) {
        (directives, isTargeted) = CacheControl.governing(in: head.fields)
        (date, initialAge) = Self.times(of: head, requestTime: requestTime, responseTime: responseTime)
        expires = Self.expires(in: head.fields, now: responseTime)
        lastModified = head.fields.single(.lastModified).flatMap { HTTPDate.parse($0, now: responseTime) }
        hasEntityTag = head.fields.contains(.eTag)
        varyNames = Vary.names(in: head.fields)
        part = PartialResponse.part(of: head)
    }

    /// - Parameter former: Parsed from the same fields, but for `Date` and `Age`.
    init(_ former: Validity, _ head: ResponseHead, requestTime: Timestamp, responseTime: Timestamp) {
        (directives, isTargeted, expires, lastModified) = (former.directives, former.isTargeted, former.expires, former.lastModified)
        (hasEntityTag, varyNames, part) = (former.hasEntityTag, former.varyNames, former.part)
        (date, initialAge) = Self.times(of: head, requestTime: requestTime, responseTime: responseTime)
    }

    private static func times(
        of head: ResponseHead, requestTime: Timestamp, responseTime: Timestamp
    ) -> (date: Timestamp, initialAge: TimeSpan) {
        let date = head.fields.single(.date).flatMap { HTTPDate.parse($0, now: responseTime) } ?? responseTime
        // Dates have whole seconds, so the apparent age has too: a response dated in the current second has age 0.
        let apparentAge = TimeSpan.seconds(max(0, responseTime.seconds.subtractedClamped(date.seconds)))
        let responseDelay = max(.zero, responseTime - requestTime)
        return (date, max(apparentAge, age(in: head.fields) + responseDelay))
    }

    /// True if the response has a validator, so that it can be revalidated instead of fetched again.
    package var hasValidator: Bool { hasEntityTag || lastModified != nil }

    /// True if the response declares its own freshness lifetime, even one of zero.
    package var hasExplicitFreshness: Bool {
        directives.maxAge != nil || directives.sMaxAge != nil || (expires != nil && !isTargeted)
    }

    /// `Age`: the first member of a list; anything but a non-negative integer is ignored (RFC 9111 §5.1).
    private static func age(in fields: HTTPFields) -> TimeSpan {
        guard let field = fields.first(where: { $0.name == .age }) else { return .zero }
        let first = field.value.split(separator: ",", maxSplits: 1, omittingEmptySubsequences: false).first ?? ""
        return DeltaSeconds.parse(FieldList.trimmed(first)) ?? .zero
    }

    private static func expires(in fields: HTTPFields, now: Timestamp) -> Timestamp? {
        guard fields.contains(.expires) else { return nil }
        return fields.single(.expires).flatMap { HTTPDate.parse($0, now: now) } ?? .distantPast
    }
}

/// The terms behind a `Freshness`, of which decisions use only the result.
package struct AgeArithmetic: Hashable, Sendable {
    /// The time the request was sent, the time the response was received, and the time of the calculation.
    package let requestTime, responseTime, now: Timestamp
    /// `Date`, or the time of receipt if `Date` is missing or invalid.
    package let date: Timestamp
    /// The received `Age`; zero without one.
    package let ageValue: TimeSpan
    /// Time since the response was received; never negative.
    package let residentTime: TimeSpan
    /// `corrected_initial_age`: the age at receipt that reuse decisions use.
    package let correctedInitialAge: TimeSpan
    /// `current_age`, the lifetime, and the source of the lifetime.
    package let freshness: Freshness

    package init(_ stored: StoredResponse, now: Timestamp) {
        requestTime = stored.requestTime
        responseTime = stored.responseTime
        self.now = now
        date = stored.validity.date
        let age = stored.head.fields.first { $0.name == .age }?.value.prefix { $0 != "," }
        ageValue = age.flatMap { DeltaSeconds.parse(FieldList.trimmed($0)) } ?? .zero
        residentTime = max(.zero, now - stored.responseTime)
        correctedInitialAge = stored.validity.initialAge
        freshness = Freshness.of(stored, now: now)
    }

    /// `max(0, response_time - date_value)` in whole seconds, the resolution of HTTP dates.
    package var apparentAge: TimeSpan { .seconds(max(0, responseTime.seconds.subtractedClamped(date.seconds))) }
    /// `response_time - request_time`; never negative.
    package var responseDelay: TimeSpan { max(.zero, responseTime - requestTime) }
    /// `age_value + response_delay`.
    package var correctedAgeValue: TimeSpan { ageValue + responseDelay }

    /// One line per term: its name, its formula and its value in seconds.
    package var lines: [String] {
        [
            "apparent_age          = max(0, response_time - date_value) = \(apparentAge.secondsText)",
            "response_delay        = response_time - request_time = \(responseDelay.secondsText)",
            "corrected_age_value   = age_value + response_delay = \(ageValue.secondsText) + \(responseDelay.secondsText)"
                + " = \(correctedAgeValue.secondsText)",
            "corrected_initial_age = max(apparent_age, corrected_age_value) = \(correctedInitialAge.secondsText)",
            "resident_time         = now - response_time = \(residentTime.secondsText)",
            "current_age           = corrected_initial_age + resident_time = \(freshness.age.secondsText)",
            "freshness_lifetime    = \(freshness.lifetime.secondsText) (\(freshness.source.words))",
            "remaining             = freshness_lifetime - current_age = \(freshness.remaining.secondsText)",
        ]
    }

    /// The terms as a JSON object; durations in seconds.
    package var json: JSONValue {
        [
            ("requestTime", .string(RFC3339.format(requestTime))), ("responseTime", .string(RFC3339.format(responseTime))),
            ("dateValue", .string(RFC3339.format(date))), ("now", .string(RFC3339.format(now))), ("ageValue", .seconds(of: ageValue)),
            ("apparentAge", .seconds(of: apparentAge)), ("responseDelay", .seconds(of: responseDelay)),
            ("correctedAgeValue", .seconds(of: correctedAgeValue)), ("correctedInitialAge", .seconds(of: correctedInitialAge)),
            ("residentTime", .seconds(of: residentTime)), ("currentAge", .seconds(of: freshness.age)),
            ("freshnessLifetime", .seconds(of: freshness.lifetime)), ("source", .string(freshness.source.rawValue)),
            ("remaining", .seconds(of: freshness.remaining)),
        ].object
    }
}

extension [(String, JSONValue)] {
    /// An object with these members in this order.
    var object: JSONValue { .object(JSONObject(self)) }
}

extension JSONValue {
    /// A duration in seconds, with up to three decimals for milliseconds.
    static func seconds(of span: TimeSpan) -> JSONValue { .number(JSONNumber(checked: span.secondsText)) }
}

extension TimeSpan {
    /// Seconds in decimal digits: `90`, `-0.5`. Also a JSON number.
    var secondsText: String {
        let magnitude = milliseconds.magnitude
        var text = "\(milliseconds < 0 ? "-" : "")\(magnitude / 1000)"
        if magnitude % 1000 != 0 {
            text += "." + "\(1000 + magnitude % 1000)".dropFirst()
            while text.hasSuffix("0") { text.removeLast() }
        }
        return text
    }
}

extension Freshness.Source {
    /// The source of the lifetime, in words.
    var words: String {
        switch self {
        case .sMaxAge: "s-maxage"
        case .maxAge: "max-age"
        case .expires: "Expires - Date"
        case .route: "the route's ttl"
        case .assigned: "the ttl of the route or of the category"
        case .heuristic: "heuristic: a tenth of the time since Last-Modified, a day at most"
        case .none: "nothing names one"
        }
    }
}
