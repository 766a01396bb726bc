// The freshness data in a response's own fields, and its age on arrival (RFC 9111 §4.2.1, §4.2.3).
package import HTTPTypes

/// The parsed part of the freshness arithmetic: every term that does not depend on the current time.
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
        let date = head.fields.single(.date).flatMap { HTTPDate.parse($0, now: responseTime) } ?? responseTime
        self.date = date
        expires = Self.expires(in: head.fields, now: responseTime)
        lastModified = head.fields.single(.lastModified).flatMap { HTTPDate.parse($0, now: responseTime) }
        hasEntityTag = head.fields.contains(.eTag)
        varyNames = Vary.names(in: head.fields)
        part = PartialResponse.part(of: head)

        // Dates have whole seconds, so the apparent age has too: a response dated in the current second has age 0.
        let apparentAge = TimeSpan.seconds(max(0, responseTime.seconds.subtractedClamped(date.seconds)))
        let responseDelay = max(.zero, responseTime - requestTime)
        initialAge = max(apparentAge, Self.age(in: head.fields) + responseDelay)
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
