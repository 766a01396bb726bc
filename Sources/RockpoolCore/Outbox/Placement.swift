// The entity, the collection and the lane of a write, under names that a local id's mapping does not change (docs/outbox.md#lanes,
// docs/outbox.md#local-ids).
package import HTTPTypes

/// The place of one write among the others.
package struct Placement: Hashable, Sendable {
    /// The entity's path; for a create, the path under its local id.
    package var entity: String?
    /// The name of its collection, `EntityMatch.name`; nil where no resource is declared.
    package var collection: String?
    /// The entity's id; nil where no resource is declared.
    package var entityID: String?
    /// The local id of a create, used until a server id is known.
    package var localID: LocalID?
    package var lane: String

    /// - Parameters:
    ///   - entity: the entity that routing matched for the request.
    ///   - path: that of the request.
    ///   - sender: the principal; without a credential, the client's address.
    ///   - newID: for a create of a declared resource.
    ///   - alias: the local id that a server id of a collection was mapped from; both are one entity, and one lane.
    package init(
        _ entity: EntityMatch?, method: HTTPRequest.Method, upstream: String, order: RouteOrder, principal: String?, path: String = "",
        sender: String? = nil, newID: LocalID,
        alias: (_ collection: String, _ id: String) -> LocalID?
    ) {
        if let entity {
            (collection, entityID) = entity.names(alias)
            if !entity.isItem, method == .post, collection != nil {
                localID = newID
                entityID = newID.text
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
