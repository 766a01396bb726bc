// What replay keeps in memory of every operation that has not ended, and the lanes in which they stay in order (docs/outbox.md#lanes).
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
    package var state: OperationState
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
    /// True if it creates an item of a declared resource.
    private(set) package var isCreate = false
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
            in: operation.lane, entity: operation.entity, isCreate: operation.isCreate,
            address: operation.request.fields[.rockpoolClient])
    }

    /// Sets what its order among the others depends on, besides what the initializer takes.
    /// - Parameters:
    ///   - isCreate: true if it creates an item of a declared resource, on which later writes may build.
    ///   - address: that of its client; nil if it is not known.
    package mutating func order(in lane: String, entity name: String?, isCreate: Bool, address: String?) {
        self.isCreate = isCreate
        if method == .post, isCreate || collection != nil { entity = LaneID(upstream: upstream, lane: name ?? lane) }
        isTelemetry = Lane.isTelemetry(lane, upstream: upstream)
        isApart = entity == nil && collection == nil && lane != upstream
        // No principal has such a name.
        if principal == nil, let address { client = "@\(address)" }
    }
}

/// A lane and its upstream: two upstreams may use the same lane name.
///
/// It is the hash of both, because a hundred thousand lanes may wait. Two lanes with one hash would wait for each other, and nothing worse.
package struct LaneID: Hashable, Sendable {
    private let hash: Int

    package init(upstream: String, lane: String) {
        var hasher = Hasher()
        hasher.combine(upstream)
        hasher.combine(lane)
        hash = hasher.finalize()
    }
}

/// The names of lanes.
package enum Lane {
    /// Returns the lane of an operation. With `order: entity` it is named by the entity, which for an undeclared path is the path; a create
    /// passes the path of its local id and so starts a lane of its own. An operation without a known entity shares one lane with all others
    /// of its upstream and principal.
    ///
    /// The parts are separated by a space, which neither an upstream's name nor a path contains.
    package static func name(upstream: String, entity: String?, order: LaneOrder, principal: String? = nil) -> String {
        switch (order, entity) {
        case (.global, _): upstream
        case (.entity, let entity?): "\(upstream) \(entity)"
        case (.entity, nil): principal.map { "\(upstream) * \($0)" } ?? "\(upstream) *"
        }
    }

    /// The lane of what one sender writes; no path begins like it.
    package static func name(upstream: String, sender: String) -> String { "\(upstream) @ \(sender)" }

    // MARK: - Telemetry

    /// The digits of the number at the end of a telemetry lane.
    package static let numberLength = 19
    private static let telemetryMark = " # "

    /// Returns the lane of one write of a telemetry route: a lane of its own, so that it waits for nothing and holds nothing. The lanes of a
    /// route sort by `number`, the order of acceptance.
    package static func telemetry(upstream: String, route: String, number: Int64) -> String {
        let digits = String(max(0, number))
        return
            "\(telemetryQueue(upstream: upstream, route: route)) \(String(repeating: "0", count: numberLength - digits.utf8.count))\(digits)"
    }

    /// The name that the lanes of a telemetry route have in common.
    package static func telemetryQueue(upstream: String, route: String) -> String { upstream + telemetryMark + route }

    /// The same, of the lane of one of its writes.
    package static func telemetryQueue(of lane: String) -> String { String(lane.dropLast(numberLength + 1)) }

    /// The route in the name of a telemetry queue.
    package static func route(ofQueue name: String, upstream: String) -> String {
        String(name.dropFirst(upstream.count + telemetryMark.count))
    }

    /// True for the lane of a telemetry write.
    package static func isTelemetry(_ lane: String, upstream: String) -> Bool {
        lane.utf8.count > upstream.utf8.count && lane.utf8.dropFirst(upstream.utf8.count).starts(with: telemetryMark.utf8)
    }

    /// Returns the entity and the lane under the names of this version for an open operation of an undeclared path that was queued by an older
    /// one: its POSTs had a lane for each principal, and paths were named as they were spelled. Nil if its names are current.
    package static func renewed(
        _ lane: String, entity: String?, isPost: Bool, upstream: String, principal: String?
    ) -> (lane: String, entity: String)? {
        guard let entity, lane != upstream else { return nil }
        let old = isPost ? "\(upstream) \(entity) \(principal ?? "*")" : ""
        let current = entity.canonicalEscapes
        guard lane == old || lane == "\(upstream) \(entity)" && current != entity else { return nil }
        return ("\(upstream) \(current)", current)
    }
}
