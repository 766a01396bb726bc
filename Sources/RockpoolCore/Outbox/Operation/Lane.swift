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

    /// The lane of what one sender writes; no path begins like it.
    package static func name(upstream: String, sender: String) -> String { "\(upstream) @ \(sender)" }

    // MARK: telemetry

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
