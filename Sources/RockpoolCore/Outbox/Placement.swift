// The place of a write among the others: its entity, its collection and its lane, under names that a local id's mapping does not change
// (docs/outbox.md#lanes, docs/outbox.md#local-ids), and what it holds back there.
package import HTTPTypes

/// The place of one write among the others.
package struct Placement: Hashable, Sendable {
    /// The entity's path; for a create, the path under its local id.
    package var entity: String?
    /// The name of its collection, `EntityMatch.name`; nil where no resource is declared.
    package var collection: String?
    /// The entity's id; nil where no resource is declared.
    package var entityID: String?
    /// The id of a create's item.
    package var newItem: NewItemID?
    package var lane: String

    /// - Parameters:
    ///   - entity: the entity that routing matched for the request.
    ///   - path: that of the request.
    ///   - sender: the principal; without a credential, the client's address.
    ///   - newItem: for a create of a declared resource.
    ///   - alias: the local id that a server id of a collection was mapped from; both are one entity, and one lane.
    package init(
        _ entity: EntityMatch?, method: HTTPRequest.Method, upstream: String, order: RouteOrder, principal: String?, path: String = "",
        sender: String? = nil, newItem: NewItemID,
        alias: (_ collection: String, _ id: String) -> LocalID?
    ) {
        if let entity {
            (collection, entityID) = entity.names(alias)
            if !entity.isItem, method == .post, let collection {
                self.newItem = newItem
                entityID = alias(collection, newItem.text)?.text ?? newItem.text
            }
            // An item's path may be outside its collection's, so the name combines both: it is the same before and after the item has a
            // path.
            if let collection, let entityID {
                self.entity = "\(collection)/\(entityID)"
            } else {
                self.entity = entity.path.canonical(alias)
            }
        }
        lane =
            switch order {
            case .entity: Lane.name(upstream: upstream, entity: self.entity, order: .entity, principal: principal)
            case .path: Lane.name(upstream: upstream, entity: path.canonicalEscapes, order: .entity)
            case .sender: Lane.name(upstream: upstream, sender: sender ?? principal ?? "")
            case .upstream: Lane.name(upstream: upstream, entity: nil, order: .global)
            }
    }
}

extension EntityMatch {
    /// Returns the collection and the id of an entity under names that a mapping does not change; nil where no resource is declared.
    package func names(_ alias: (_ collection: String, _ id: String) -> LocalID?) -> (collection: String?, id: String?) {
        guard resource != nil else { return (nil, nil) }
        let collection = name?.canonical(alias)
        return (collection, id.map { id in collection.flatMap { alias($0, id)?.text } ?? id })
    }
}

extension String {
    /// Returns the path with every mapped server id replaced by its former local id, so that the name is the same before and after mapping.
    package func canonical(_ alias: (_ collection: String, _ id: String) -> LocalID?) -> String {
        var path = ""
        for segment in split(separator: "/") {
            let local = alias(path, String(segment))
            path += "/" + (local?.text ?? String(segment))
        }
        return path.isEmpty ? self : path
    }
}

/// The later operations of a lane that an open operation holds back by its own state: the one rule for live writes, for replay and for what
/// is shown.
package struct LaneReach: Hashable, Sendable {
    /// The part of its own client's later operations in the lane.
    package enum Scope: Hashable, Sendable {
        /// None: it has left the order of the lane.
        case nothing
        /// Those to the same entity, which build on it.
        case entity
        /// All of them.
        case lane
    }

    package var own: Scope
    /// True if operations of other clients wait for it as well.
    package var holdsOthers: Bool

    /// Nobody waits for it.
    static let none = LaneReach(own: .nothing, holdsOthers: false)
    /// The later operations of its client wait.
    static let client = LaneReach(own: .lane, holdsOthers: false)
    /// Everybody waits.
    static let everybody = LaneReach(own: .lane, holdsOthers: true)
}

extension OperationSummary {
    /// Returns what it holds back.
    ///
    /// * What is sent, or will be by itself, keeps the order of its client, and of the other clients of the lane.
    /// * An open conflict holds what builds on it: later writes of its client to the same entity. An unknown effect holds the same entity
    ///   while it is looked for (`ReplayContext.probes`, within `queue.uncertain_hold`).
    /// * What waits for a credential of its principal holds it, because the credential releases all of it in order.
    /// * What was refused holds nothing, unless its route has `on_refused: hold`.
    ///
    /// - Parameter context: that of its upstream; nil for one that is not declared any more.
    package func reach(in context: ReplayContext?, now: Timestamp) -> LaneReach {
        let moving = isApart ? LaneReach.client : .everybody
        switch state {
        case .pending, .inflight: return moving
        case .uncertain:
            if let context, OperationMachine.isHarmless(self, context: context, now: now) { return moving }
            let isStuck = OperationMachine.isStuck(self, context: context, now: now)
            if isStrict { return isStuck ? .client : moving }
            return entity == nil || probes >= ReplayContext.probes ? .none : LaneReach(own: .entity, holdsOthers: true)
        case .conflicted:
            if isStrict { return .client }
            return entity == nil ? .none : LaneReach(own: .entity, holdsOthers: false)
        case .parked: return isStrict || reason == .auth && principal != nil ? .client : .none
        case .dead: return isStrict ? .client : .none
        case .delivered, .cancelled, .superseded: return .none
        }
    }
}

/// What the order of operations depends on besides their rows.
package struct LaneRules: Sendable {
    /// The configuration in force; nil where it is not known: then nothing is strict.
    package var routes: RouteTable?
    /// True if an upstream has accepted the principal's credential.
    package var isProved: @Sendable (String?) -> Bool
    package var now: Timestamp

    package init(routes: RouteTable? = nil, now: Timestamp, isProved: @escaping @Sendable (String?) -> Bool = { _ in false }) {
        self.routes = routes
        self.now = now
        self.isProved = isProved
    }

    /// The settings of an upstream; nil for one that is not declared any more.
    package func context(_ upstream: String) -> ReplayContext? { routes?.upstream(named: upstream).map { ReplayContext($0) } }

    /// True if an upstream takes a POST with an unknown effect again: until then it keeps its place in the order.
    package func resendsPosts(of upstream: String) -> Bool { context(upstream)?.idempotency.honoured == .yes }
}

extension RouteTable {
    /// The summary of an operation, with what its route says of it.
    package func summary(of operation: QueuedWrite) -> OperationSummary {
        var summary = OperationSummary(operation)
        complete(&summary, target: operation.request.target)
        return summary
    }

    /// Sets what the route of an operation says of it. `target` is that of its request.
    package func complete(_ summary: inout OperationSummary, target: String) {
        let method = summary.method.rawValue
        summary.route = pattern(of: method, target: target, upstream: summary.upstream)
        summary.isStrict = holdsRefused(upstream: summary.upstream, method: method, target: target)
    }
}
