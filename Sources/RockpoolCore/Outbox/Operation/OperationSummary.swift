// The in-memory data of replay for every operation that has not ended (docs/outbox.md#lanes).
package import HTTPTypes

/// The properties of an operation that replay order needs; small enough to keep for every open operation.
package struct OperationSummary: Hashable, Sendable, Identifiable {
    /// The position in acceptance order. It is no identity: what a node of a fleet has kept alone gets another number when it is handed over.
    package var sequence: Int64
    /// Order within the lane: an edited operation has the place of the one it replaces.
    package var place: Int64
    /// The public id.
    package var id: String {
        get { shortID.text }
        set { shortID = UUIDText(newValue) }
    }
    /// The same, as the key of tables.
    private(set) package var shortID: UUIDText
    /// The state.
    package var state: OperationState
    /// The reason for the state.
    package var reason: OperationReason?
    /// Determines, with the key, whether it may be sent twice.
    package var method: HTTPRequest.Method
    /// The path of its entity's collection; operations of one collection may share a batch.
    package var collection: String?
    /// The pattern of the configured route of the request; nil without one.
    package var route: String?
    /// The lane it is in.
    package var lane: LaneID
    /// Name of the declared upstream.
    package var upstream: String
    /// −100…100, lower is sent first.
    package var priority: Int
    /// The principal that sent the write.
    package var principal: String?
    /// The client whose order it belongs to: its principal; for a write without a credential, its address, or empty if that is not known.
    package var client: String
    /// The hash of the entity that it changes: for an action the item's. Nil for a POST to an undeclared path: it is an entity of its own, and
    /// nothing builds on it but what names it.
    package var entity: LaneID?
    /// True if it neither holds nor waits for operations of other clients: a POST to an undeclared path, whose meaning is not known.
    package var isApart = false
    /// True for a write of a telemetry route.
    private(set) package var isTelemetry = false
    /// True if its route has `on_refused: hold`.
    package var isStrict = false
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
    /// Those of `needs` that matter for the order alone: they are passed once they have left the order of their own lane.
    package var follows: Set<Int64> = []
    /// True if another node of a fleet has it in flight: it holds its lane, and there is nothing to do for it here.
    package var isSentElsewhere = false

    package init(
        sequence: Int64, place: Int64? = nil, id: String, state: OperationState, reason: OperationReason? = nil,
        method: HTTPRequest.Method = .post, lane: String, upstream: String, entity: String? = nil, priority: Int = 0,
        principal: String? = nil, acceptedAt: Timestamp, firstSentAt: Timestamp? = nil, lostAt: Timestamp? = nil, nextAttemptAt: Timestamp,
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
        client = principal ?? ""
        self.entity = method == .post ? nil : LaneID(upstream: upstream, lane: entity ?? lane)
        self.acceptedAt = acceptedAt
        self.firstSentAt = firstSentAt
        self.lostAt = lostAt
        self.nextAttemptAt = nextAttemptAt
        self.expiresAt = expiresAt
        self.probes = probes
        self.needs = needs
    }

    /// - Parameter route: the pattern of its configured route.
    package init(_ operation: QueuedWrite, route: String? = nil) {
        self.init(
            sequence: operation.sequence, place: operation.place, id: operation.id, state: operation.state, reason: operation.reason,
            method: operation.request.method, lane: operation.lane, upstream: operation.upstream, entity: operation.entity,
            priority: operation.priority, principal: operation.principal, acceptedAt: operation.acceptedAt,
            firstSentAt: operation.firstSentAt, lostAt: operation.lostAt, nextAttemptAt: operation.nextAttemptAt,
            expiresAt: operation.expiresAt, probes: operation.probes, needs: operation.needs)
        follows = operation.follows
        collection = operation.collection
        expiresBySignature = operation.expiresBySignature
        self.route = route
        order(
            in: operation.lane, entity: operation.entity, isCreate: operation.localID != nil,
            address: operation.request.fields[.rockpoolClient])
    }

    /// Sets what its order among the others depends on, besides what the initializer takes.
    /// - Parameters:
    ///   - isCreate: true if it creates an item of a declared resource, on which later writes may build.
    ///   - address: that of its client; nil if it is not known.
    package mutating func order(in lane: String, entity name: String?, isCreate: Bool, address: String?) {
        if method == .post, isCreate || collection != nil { entity = LaneID(upstream: upstream, lane: name ?? lane) }
        isTelemetry = Lane.isTelemetry(lane, upstream: upstream)
        isApart = entity == nil && collection == nil && lane != upstream
        // No principal has such a name.
        if principal == nil, let address { client = "@\(address)" }
    }
}
