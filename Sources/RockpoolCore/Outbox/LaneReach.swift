// What an open operation holds back in its lane: the one rule for live writes, for replay and for what is shown (docs/outbox.md#lanes).
import HTTPTypes

/// The later operations of a lane that an open operation holds back by its own state.
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
