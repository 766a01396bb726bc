// What replay holds in memory of every operation that has not ended (outbox.md §1.8).
package import HTTPTypes

/// What the order of replay reads of an operation; light enough to hold for every open one.
package struct OperationSummary: Hashable, Sendable, Identifiable {
    /// Acceptance order.
    package var sequence: Int64
    /// Order within the lane: an edited operation has the place of the one it replaces.
    package var place: Int64
    /// The public id.
    package var id: String
    /// Where it stands.
    package var state: OperationState
    /// Why it stands there.
    package var reason: OperationReason?
    /// Decides, with the key, whether it may be sent twice.
    package var method: HTTPRequest.Method
    /// The path of its entity's collection; those of one may go together in a batch.
    package var collection: String?
    /// The lane it is in.
    package var lane: String
    /// Name of the declared upstream.
    package var upstream: String
    /// −100…100, lower goes first.
    package var priority: Int
    /// Whose write it is.
    package var principal: String?
    /// Ageing counts from here.
    package var acceptedAt: Timestamp
    /// The key's clock runs from here.
    package var firstSentAt: Timestamp?
    /// When the last attempt left that may still run, as far as the row says.
    package var lostAt: Timestamp?
    /// Not sent, or looked for, before this.
    package var nextAttemptAt: Timestamp
    /// The client's own limit.
    package var expiresAt: Timestamp?
    /// How often its effect was looked for.
    package var probes: Int
    /// Sequences of operations of other lanes that must have ended first.
    package var needs: Set<Int64>

    package init(
        sequence: Int64, place: Int64? = nil, id: String, state: OperationState, reason: OperationReason? = nil,
        method: HTTPRequest.Method = .post, lane: String, upstream: String, priority: Int = 0, principal: String? = nil,
        acceptedAt: Timestamp, firstSentAt: Timestamp? = nil, lostAt: Timestamp? = nil, nextAttemptAt: Timestamp,
        expiresAt: Timestamp? = nil, probes: Int = 0, needs: Set<Int64> = []
    ) {
        self.sequence = sequence
        self.place = place ?? sequence
        self.id = id
        self.state = state
        self.reason = reason
        self.method = method
        self.lane = lane
        collection = nil
        self.upstream = upstream
        self.priority = priority
        self.principal = principal
        self.acceptedAt = acceptedAt
        self.firstSentAt = firstSentAt
        self.lostAt = lostAt
        self.nextAttemptAt = nextAttemptAt
        self.expiresAt = expiresAt
        self.probes = probes
        self.needs = needs
    }

    package init(_ operation: Operation) {
        self.init(
            sequence: operation.sequence, place: operation.place, id: operation.id, state: operation.state, reason: operation.reason,
            method: operation.request.method, lane: operation.lane, upstream: operation.upstream, priority: operation.priority,
            principal: operation.principal, acceptedAt: operation.acceptedAt, firstSentAt: operation.firstSentAt,
            lostAt: operation.lostAt, nextAttemptAt: operation.nextAttemptAt, expiresAt: operation.expiresAt, probes: operation.probes,
            needs: operation.needs)
        collection = operation.collection
    }
}

/// A lane and whose it is: two upstreams may name theirs alike.
package struct LaneID: Hashable, Sendable {
    package var upstream: String
    package var lane: String

    init(upstream: String, lane: String) { (self.upstream, self.lane) = (upstream, lane) }

    package init(_ operation: OperationSummary) {
        upstream = operation.upstream
        lane = operation.lane
    }
}
