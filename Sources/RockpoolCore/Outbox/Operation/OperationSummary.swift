// The in-memory data of replay for every operation that has not ended (docs/outbox.md#lanes).
package import HTTPTypes

/// The properties of an operation that replay order needs; small enough to keep for every open operation.
package struct OperationSummary: Hashable, Sendable, Identifiable {
    /// The position in acceptance order.
    package var sequence: Int64
    /// Order within the lane: an edited operation has the place of the one it replaces.
    package var place: Int64
    /// The public id.
    package var id: String {
        get { shortID.text }
        set { shortID = UUIDText(newValue) }
    }
    private var shortID: UUIDText
    /// The state.
    package var state: OperationState
    /// The reason for the state.
    package var reason: OperationReason?
    /// Determines, with the key, whether it may be sent twice.
    package var method: HTTPRequest.Method
    /// The path of its entity's collection; operations of one collection may share a batch.
    package var collection: String?
    /// The lane it is in.
    package var lane: LaneID
    /// Name of the declared upstream.
    package var upstream: String
    /// −100…100, lower is sent first.
    package var priority: Int
    /// The principal that sent the write.
    package var principal: String?
    /// The start of ageing.
    package var acceptedAt: Timestamp
    /// The start of the key's lifetime.
    package var firstSentAt: Timestamp?
    /// The time of the last attempt that may still run, as far as the row shows.
    package var lostAt: Timestamp?
    /// The earliest time of the next attempt or probe.
    package var nextAttemptAt: Timestamp
    /// The client's expiry time.
    package var expiresAt: Timestamp?
    /// True if that is the time until which its signature is accepted.
    package var expiresBySignature = false
    /// The number of probes for its effect.
    package var probes: Int
    /// Sequences of operations in other lanes that must have ended first.
    package var needs: Set<Int64>
    /// True if another node of a fleet has it in flight: it holds its lane, and there is nothing to do for it here.
    package var isSentElsewhere = false

    package init(
        sequence: Int64, place: Int64? = nil, id: String, state: OperationState, reason: OperationReason? = nil,
        method: HTTPRequest.Method = .post, lane: String, upstream: String, priority: Int = 0, principal: String? = nil,
        acceptedAt: Timestamp, firstSentAt: Timestamp? = nil, lostAt: Timestamp? = nil, nextAttemptAt: Timestamp,
        expiresAt: Timestamp? = nil, probes: Int = 0, needs: Set<Int64> = []
    ) {
        self.sequence = sequence
        self.place = place ?? sequence
        shortID = UUIDText(id)
        self.state = state
        self.reason = reason
        self.method = method
        self.lane = LaneID(upstream: upstream, lane: lane)
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

    package init(_ operation: QueuedWrite) {
        self.init(
            sequence: operation.sequence, place: operation.place, id: operation.id, state: operation.state, reason: operation.reason,
            method: operation.request.method, lane: operation.lane, upstream: operation.upstream, priority: operation.priority,
            principal: operation.principal, acceptedAt: operation.acceptedAt, firstSentAt: operation.firstSentAt,
            lostAt: operation.lostAt, nextAttemptAt: operation.nextAttemptAt, expiresAt: operation.expiresAt, probes: operation.probes,
            needs: operation.needs)
        collection = operation.collection
        expiresBySignature = operation.expiresBySignature
    }
}
