// What a response's own fields say of its freshness and its age on arrival (RFC 9111 §4.2.1, §4.2.3).
package import HTTPTypes

/// The parsed part of the freshness arithmetic: everything that does not depend on the present moment.
package struct Validity: Hashable, Sendable {
    package let directives: CacheControl
    /// Whether a targeted field set the directives, so that `Expires` says nothing (RFC 9213 §2.2).
    package let isTargeted: Bool
    /// `Date`, or the time of receipt where that is missing or bad.
    package let date: Timestamp
    /// `Expires`; nil when absent. One that cannot be read, and several, are long past.
    package let expires: Timestamp?
    package let lastModified: Timestamp?
    /// `corrected_initial_age`: how old the response was when it came.
    package let initialAge: TimeSpan
    package let hasEntityTag: Bool
    /// The request fields it was selected by, each once; nil when no request can be known to match.
    package let varyNames: [HTTPField.Name]?
    /// Which bytes are held; nil when all are.
    package let part: ContentRange?

    init(_ head: ResponseHead, requestTime: Timestamp, responseTime: Timestamp) {
        (directives, isTargeted) = CacheControl.governing(head.fields)
        let date = head.fields.single(.date).flatMap { HTTPDate.parse($0, now: responseTime) } ?? responseTime
        self.date = date
        expires = Self.expires(head.fields, now: responseTime)
        lastModified = head.fields.single(.lastModified).flatMap { HTTPDate.parse($0, now: responseTime) }
        hasEntityTag = head.fields.contains(.eTag)
        varyNames = Vary.names(head.fields)
        part = PartialResponse.part(of: head)

        // Dates count whole seconds, so the apparent age does too: a response of this second is not up to one second old.
        let apparentAge = TimeSpan.seconds(max(0, responseTime.seconds.subtractedClamped(date.seconds)))
        let responseDelay = max(.zero, responseTime - requestTime)
        initialAge = max(apparentAge, Self.age(head.fields) + responseDelay)
    }

    /// Whether anything could be asked of the upstream but the whole response again.
    package var hasValidator: Bool { hasEntityTag || lastModified != nil }

    /// Whether the response itself says how long it is fresh, be it not at all.
    package var hasExplicitFreshness: Bool {
        directives.maxAge != nil || directives.sMaxAge != nil || (expires != nil && !isTargeted)
    }

    /// `Age`: the first member of a list; anything but a non-negative integer is ignored (RFC 9111 §5.1).
    private static func age(_ fields: HTTPFields) -> TimeSpan {
        guard let field = fields.first(where: { $0.name == .age }) else { return .zero }
        let first = field.value.split(separator: ",", maxSplits: 1, omittingEmptySubsequences: false).first ?? ""
        return DeltaSeconds.parse(FieldList.trimmed(first)) ?? .zero
    }

    private static func expires(_ fields: HTTPFields, now: Timestamp) -> Timestamp? {
        guard fields.contains(.expires) else { return nil }
        return fields.single(.expires).flatMap { HTTPDate.parse($0, now: now) } ?? .distantPast
    }
}
