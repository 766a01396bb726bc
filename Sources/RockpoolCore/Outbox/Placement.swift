// Where a write belongs: its entity, its collection and its lane, under names that a local id's mapping does not change
// (outbox.md §1.8, §1.9).
package import HTTPTypes

/// The place of one write among the others.
package struct Placement: Hashable, Sendable {
    /// The entity's path; a create's is the path it will have under its local id.
    package var entity: String?
    /// The path of its collection; nil where no resource is declared.
    package var collection: String?
    /// The entity's id; nil where no resource is declared.
    package var entityID: String?
    /// The id a create is known by until it has another.
    package var localID: LocalID?
    package var lane: String

    /// - Parameters:
    ///   - entity: what routing says that the request is about.
    ///   - newID: for a create of a declared resource.
    ///   - alias: the local id that an id of a collection was mapped from; both are one entity, and one lane.
    package init(
        _ entity: EntityMatch?, method: HTTPRequest.Method, upstream: String, order: LaneOrder, principal: String?, newID: LocalID,
        alias: (_ collection: String, _ id: String) -> LocalID?
    ) {
        var laneEntity: String?
        if let entity {
            (collection, entityID) = entity.names(alias)
            if !entity.isItem, method == .post, collection != nil {
                localID = newID
                entityID = newID.text
            }
            // An item's path may lie elsewhere than its collection's: the two together name it, before it has a path and after.
            if let collection, let entityID {
                self.entity = "\(collection)/\(entityID)"
            } else {
                self.entity = entity.path.canonical(alias)
            }
            laneEntity = self.entity
            if entity.resource == nil, method == .post, !entity.isItem {
                // Where nothing is declared a POST may be anything: those of one identity to one path stay in order.
                laneEntity = "\(entity.path) \(principal ?? "*")"
            }
        }
        lane = Lane.name(upstream: upstream, entity: laneEntity, order: order, principal: principal)
    }
}

extension EntityMatch {
    /// The collection and the id of an entity under names that a mapping does not change; nil where no resource is declared.
    package func names(_ alias: (_ collection: String, _ id: String) -> LocalID?) -> (collection: String?, id: String?) {
        guard resource != nil else { return (nil, nil) }
        let collection = collection?.canonical(alias)
        return (collection, id.map { id in collection.flatMap { alias($0, id)?.text } ?? id })
    }
}

extension String {
    /// The path with every mapped server id replaced by the local id it once had, so that a name holds before and after.
    package func canonical(_ alias: (_ collection: String, _ id: String) -> LocalID?) -> String {
        var path = ""
        for segment in split(separator: "/") {
            let local = alias(path, String(segment))
            path += "/" + (local?.text ?? String(segment))
        }
        return path.isEmpty ? self : path
    }
}
