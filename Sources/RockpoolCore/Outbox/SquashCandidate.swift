// What squashing reads of one operation (outbox.md §1.8).
package import HTTPTypes

/// One of two neighbours in a lane.
package struct SquashCandidate: Hashable, Sendable {
    /// Acceptance order.
    package var sequence: Int64
    /// Whether it is pending and no attempt of it ever began.
    package var isUnsent: Bool
    /// The lane it is in, with its upstream.
    package var lane: String
    /// The operation before it in its lane, ended ones left out.
    package var previous: Int64?
    /// The entity's path; for a create, that of its local id. Nil when unknown: then it is never squashed.
    package var entity: String?
    /// Whether it adds an item to a collection.
    package var isCreate: Bool
    /// `publish` of `POST /notes/17/publish`.
    package var action: String?
    package var method: HTTPRequest.Method
    /// Path and query.
    package var target: String
    /// As they would be sent; without credential, key and `Content-Type`.
    package var fields: HTTPFields
    package var contentType: String?
    package var body: [UInt8]
    /// Whose write it is.
    package var principal: String?
    package var priority: Int
    package var expiresAt: Timestamp?
    /// From `Rockpool-Group`.
    package var group: String?
    /// Sequences of the operations it waits for beside its lane.
    package var needs: Set<Int64>
    /// Whether operations wait for it, the other of the two left out.
    package var hasDependants: Bool
    /// False when `Rockpool-No-Merge: true` was asked.
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

    /// Fields that can bear on what the write does: all but those known not to. A difference in one nobody has heard of counts.
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
