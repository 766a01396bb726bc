// One stored variant, as reuse decisions see it: what came, when, and the parts of it every decision needs, read once.
package import HTTPTypes

/// A stored response without its body.
package struct StoredResponse: Hashable, Sendable {
    /// As stored: without hop-by-hop fields and `Set-Cookie`.
    package var head: ResponseHead {
        didSet { validity = Validity(head, requestTime: requestTime, responseTime: responseTime) }
    }
    /// The request's fields that `Vary` names, normalised; those the request lacked are missing.
    package var requestFields: HTTPFields
    /// When the request was sent (RFC 9111 §4.2.3).
    package var requestTime: Timestamp {
        didSet { validity = Validity(head, requestTime: requestTime, responseTime: responseTime) }
    }
    /// When the head of the response, or of the last 304 for it, was received.
    package var responseTime: Timestamp {
        didSet { validity = Validity(head, requestTime: requestTime, responseTime: responseTime) }
    }
    /// Bytes stored.
    package var bodyLength: Int64
    /// The category's name.
    package var category: String
    /// Freshness for a response without any of its own; given by a category that a route named.
    package var assignedTTL: TimeSpan?
    /// An unsafe request to its URI has succeeded since: it needs validation before it is used again (RFC 9111 §4.4). Kept all the
    /// same, because while the upstream is away it is the best there is.
    package var isInvalidated = false
    /// What its fields say of freshness, parsed when they were set, so that a hit parses nothing.
    package private(set) var validity: Validity

    package init(
        head: ResponseHead, requestFields: HTTPFields = [:], requestTime: Timestamp, responseTime: Timestamp, bodyLength: Int64 = 0,
        category: String = Category.important.name, assignedTTL: TimeSpan? = nil
    ) {
        self.head = head
        self.requestFields = requestFields
        self.requestTime = requestTime
        self.responseTime = responseTime
        self.bodyLength = bodyLength
        self.category = category
        self.assignedTTL = assignedTTL
        validity = Validity(head, requestTime: requestTime, responseTime: responseTime)
    }

    /// The directives that govern it.
    package var directives: CacheControl {
        guard isInvalidated else { return validity.directives }
        var directives = validity.directives
        directives.noCache = .all
        return directives
    }
    /// Which bytes of the whole are stored; nil when all are (RFC 9111 §3.3).
    package var part: ContentRange? { validity.part }
    package var entityTag: EntityTag? { head.fields.single(.eTag).flatMap { EntityTag($0) } }
}
