// Which operations must stay in order (outbox.md §1.8).

/// The names of lanes.
package enum Lane {
    /// The lane of an operation. With `order: entity` that is its entity; a create passes the path of its local id and so starts a lane
    /// of its own. An operation of no known entity shares one lane with all others of its upstream and principal.
    ///
    /// The parts are set apart by a space, which neither an upstream's name nor a path holds.
    package static func name(upstream: String, entity: String?, order: LaneOrder, principal: String? = nil) -> String {
        switch (order, entity) {
        case (.global, _): upstream
        case (.entity, let entity?): "\(upstream) \(entity)"
        case (.entity, nil): principal.map { "\(upstream) * \($0)" } ?? "\(upstream) *"
        }
    }
}
