// The data of one operation that squashing needs (docs/outbox.md#squash).
package import HTTPTypes

/// One of two adjacent operations in a lane.
package struct SquashCandidate: Hashable, Sendable {
    /// The position in acceptance order.
    package var sequence: Int64
    /// True if it is pending and no attempt ever began.
    package var isUnsent: Bool
    /// The lane it is in, with its upstream.
    package var lane: String
    /// The open operation before it in its lane.
    package var previous: Int64?
    /// The entity's path; for a create, that of its local id. Nil when unknown: then it is never squashed.
    package var entity: String?
    /// True if it adds an item to a collection.
    package var isCreate: Bool
    /// The action in the path: `publish` of `POST /notes/17/publish`.
    package var action: String?
    package var method: HTTPRequest.Method
    /// Path and query.
    package var target: String
    /// The fields as they would be sent; without credential, key and `Content-Type`.
    package var fields: HTTPFields
    package var contentType: String?
    package var body: [UInt8]
    /// The principal that sent the write.
    package var principal: String?
    package var priority: Int
    package var expiresAt: Timestamp?
    /// From `Rockpool-Group`.
    package var group: String?
    /// Sequences of the operations it waits for besides its lane.
    package var needs: Set<Int64>
    /// True if operations other than its neighbour wait for it.
    package var hasDependants: Bool
    /// False when the client sent `Rockpool-No-Merge: true`.
    package var permitsMerging: Bool

    package init(
        sequence: Int64, isUnsent: Bool = true, lane: String, previous: Int64? = nil, entity: String?, isCreate: Bool = false,
        action: String? = nil, method: HTTPRequest.Method, target: String, fields: HTTPFields = [:], contentType: String? = nil,
        body: [UInt8] = [], principal: String? = nil, priority: Int = 0, expiresAt: Timestamp? = nil, group: String? = nil,
        needs: Set<Int64> = [], hasDependants: Bool = false, permitsMerging: Bool = true
    ) {
        self.sequence = sequence
        self.isUnsent = isUnsent
        self.lane = lane
        self.previous = previous
        self.entity = entity
        self.isCreate = isCreate
        self.action = action
        self.method = method
        self.target = target
        self.fields = fields
        self.contentType = contentType
        self.body = body
        self.principal = principal
        self.priority = priority
        self.expiresAt = expiresAt
        self.group = group
        self.needs = needs
        self.hasDependants = hasDependants
        self.permitsMerging = permitsMerging
    }

    /// The fields that may affect the write: all but those known not to. A difference in an unknown field counts.
    var effectiveFields: HTTPFields {
        HTTPFields(fields.filter { !Self.withoutEffect.contains($0.name.canonicalName) })
    }

    private static let withoutEffect: Set<String> = [
        "accept", "accept-encoding", "accept-language", "connection", "content-length", "date", "origin", "priority", "referer",
        "sec-ch-ua",
        "sec-ch-ua-mobile", "sec-ch-ua-platform", "sec-fetch-dest", "sec-fetch-mode", "sec-fetch-site", "traceparent", "tracestate",
        "user-agent", "x-request-id",
    ]
}
