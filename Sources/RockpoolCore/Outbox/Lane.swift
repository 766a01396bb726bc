// The lanes in which operations must stay in order (docs/outbox.md#lanes).

/// The names of lanes.
package enum Lane {
    /// Returns the lane of an operation. With `order: entity` it is named by the entity; a create passes the path of its local id and so
    /// starts a lane of its own. An operation without a known entity shares one lane with all others of its upstream and principal.
    ///
    /// The parts are separated by a space, which neither an upstream's name nor a path contains.
    package static func name(upstream: String, entity: String?, order: LaneOrder, principal: String? = nil) -> String {
        switch (order, entity) {
        case (.global, _): upstream
        case (.entity, let entity?): "\(upstream) \(entity)"
        case (.entity, nil): principal.map { "\(upstream) * \($0)" } ?? "\(upstream) *"
        }
    }
}
