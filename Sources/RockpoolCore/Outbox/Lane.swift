// The lanes in which operations must stay in order (docs/outbox.md#lanes).

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
