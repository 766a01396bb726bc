// Pulled changes: applied to cached responses of collections and items (docs/outbox.md#delta-pull, docs/storage.md#directories), and compared
// with the writes that wait.
package import HTTPTypes

extension Resource {
    /// Returns a collection's body with the changes applied; everything around the items stays as it was, digit for digit.
    ///
    /// - Parameters:
    ///   - isFull: an element that is not among the changes is removed.
    ///   - kept: ids of the elements that stay as they are.
    /// - Returns: nil when the body is not the collection this resource describes, or only a page of it.
    package func collection(
        _ body: JSONValue, fields: HTTPFields, applying changes: [DeltaChange], isFull: Bool, keeping kept: Set<String> = []
    ) -> JSONValue? {
        let (place, shape) = (JSONPointer.place(items), RepresentationShape(self))
        guard !Self.isPage(body, fields: fields), let elements = place.get(in: body)?.array, let known = identified(elements) else {
            return nil
        }
        let byID = Dictionary(known.map { ($0.id, $0.element) }) { first, _ in first }
        let after = Dictionary(changes.map { ($0.id, $0) }) { _, last in last }
        let present: (String, JSONValue?) -> JSONValue? = { id, element in
            if let element, kept.contains(id) { return element }
            switch after[id] {
            case .upsert(_, _, let representation): return shape.asElement(representation, in: element)
            case .removal: return nil
            case nil: return isFull ? nil : element
            }
        }
        var merged: [JSONValue] = []
        if isFull {
            // In the upstream's order; elements kept only because of `kept` come last.
            merged = changes.compactMap { present($0.id, byID[$0.id]) }
            merged += known.filter { after[$0.id] == nil && kept.contains($0.id) }.map(\.element)
        } else {
            merged = known.compactMap { present($0.id, $0.element) }
            merged += changes.filter { byID[$0.id] == nil }.compactMap { present($0.id, nil) }
        }
        var result = body
        return place.set(.array(merged), in: &result) ? result : nil
    }

    /// Returns the ids of a collection's items; nil when the body does not have this collection's format.
    package func ids(in body: JSONValue) -> [String]? {
        JSONPointer.place(items).get(in: body)?.array.flatMap(identified)?.map(\.id)
    }

    /// True if every id in the body of the collection, or of an item, is a number; nil where none is shown.
    package func idsAreNumbers(in body: JSONValue) -> Bool? {
        let shape = RepresentationShape(self)
        guard shape.ids.count == 1 else { return false }
        let objects = shape.items.get(in: body)?.array?.map(shape.listed) ?? [shape.unwrapped(body)]
        let ids = objects.compactMap { shape.id.get(in: $0) }
        return ids.isEmpty ? nil : ids.allSatisfy { if case .number = $0 { true } else { false } }
    }

    /// Returns an item's body with its object replaced.
    ///
    /// - Returns: nil when the cached body does not match this resource's description, or has members that the new object lacks: lists
    ///   often contain summaries, and a summary must not replace the full object.
    package func item(_ body: JSONValue, replacedBy representation: JSONValue) -> JSONValue? {
        let shape = RepresentationShape(self)
        guard let old = shape.opened(body)?.object, let new = representation.object, old.names.allSatisfy({ new[$0] != nil }) else {
            return nil
        }
        return shape.closed(representation, in: body)
    }

    /// Returns the object in an item's body; nil when there is none.
    package func object(in body: JSONValue) -> JSONValue? {
        RepresentationShape(self).opened(body)?.object.map { .object($0) }
    }

    /// Returns the element with this id in a collection's body; nil when there is none.
    package func element(_ id: String, in body: JSONValue) -> JSONValue? {
        guard let elements = JSONPointer.place(items).get(in: body)?.array else { return nil }
        return identified(elements)?.first { $0.id == id }.map { RepresentationShape(self).listed($0.element) }
    }

    /// Returns an item's body with this object.
    package func body(of object: JSONValue) -> JSONValue {
        RepresentationShape(self).closed(object, in: nil)
    }

    /// Returns the path of one entity, with the query where that names it.
    package func path(of id: String) -> String {
        (item ?? collection + "/{id}").replacing("{id}", with: DeltaTemplate.encoded(id))
    }

    /// Returns the name of one entity, as its writes have it.
    package func entityName(of id: String) -> String {
        let match = ResourceTemplates(self).match(target: path(of: id))
        return match?.name.map { "\($0)/\(id)" } ?? path(of: id)
    }

    /// What the paths of its entities begin with.
    package var itemPrefix: String { String((item ?? collection + "/").prefix { $0 != "{" && $0 != "?" }) }

    private func identified(_ elements: [JSONValue]) -> [(id: String, element: JSONValue)]? {
        let shape = RepresentationShape(self)
        var all: [(String, JSONValue)] = []
        for element in elements {
            guard let id = shape.idText(in: shape.listed(element)) else { return nil }
            all.append((id, element))
        }
        return all
    }

    private static func isPage(_ body: JSONValue, fields: HTTPFields) -> Bool {
        LinkField.next(in: fields) != nil || body["next"]?.string != nil || body["hasMore"]?.bool == true
    }
}

extension ResponseHead {
    /// The head of a stored response whose body a pull has updated: without the fields that described the old body.
    package var revised: ResponseHead {
        var head = ResponseHead(status: status, fields: fields.ofComputedBody)
        head.fields[.age] = nil
        return head
    }
}

/// A write that has not ended, with the validators of its base.
package struct PendingWrite: Hashable, Sendable {
    /// The operation's id.
    package var operation: String
    /// The entity's path.
    package var entity: String
    package var method: String
    /// True if no byte of it was sent; otherwise the upstream's state may already include its effect.
    package var isUnsent: Bool
    /// The ETag of the base that the client could have seen; nil where unknown.
    package var baseETag: String?
    /// The base's version by the resource's version pointer; nil where unknown.
    package var baseVersion: String?

    package init(
        operation: String, entity: String, method: String, isUnsent: Bool = true, baseETag: String? = nil, baseVersion: String? = nil
    ) {
        self.operation = operation
        self.isUnsent = isUnsent
        self.entity = entity
        self.method = method
        self.baseETag = baseETag
        self.baseVersion = baseVersion
    }

    /// Returns the conflict that the write will meet; nil when there is none or it cannot be determined.
    ///
    /// - Parameters:
    ///   - etag: the entity's current ETag, where it was requested.
    ///   - base: the cached representation, compared when neither validator is known.
    package func conflict(with change: DeltaChange, etag: String? = nil, base: JSONValue? = nil) -> ConflictAhead? {
        guard isUnsent, ["PUT", "PATCH", "DELETE"].contains(method) else { return nil }
        switch change {
        case .removal:
            return method == "DELETE" ? nil : ConflictAhead(operation: operation, entity: entity, theirs: nil, version: nil)
        case .upsert(_, let version, let theirs):
            let isElse: Bool
            if let version, let baseVersion {
                isElse = version != baseVersion
            } else if let etag, let baseETag {
                isElse = !EntityTag.list(in: baseETag).contains { EntityTag(etag)?.names($0) ?? false }
            } else if let base {
                isElse = base != theirs
            } else {
                return nil
            }
            return isElse ? ConflictAhead(operation: operation, entity: entity, theirs: theirs, version: version ?? etag) : nil
        }
    }
}

/// A queued change of an entity that the upstream has changed since.
package struct ConflictAhead: Hashable, Sendable {
    /// The operation's id.
    package var operation: String
    /// The entity's path.
    package var entity: String
    /// The current upstream representation; nil when the upstream deleted the entity.
    package var theirs: JSONValue?
    /// The ETag or version of `theirs`, where known.
    package var version: String?

    package init(operation: String, entity: String, theirs: JSONValue?, version: String?) {
        self.operation = operation
        self.entity = entity
        self.theirs = theirs
        self.version = version
    }

    /// The text for the log; equal as long as the upstream's state is unchanged.
    package var detail: String {
        theirs == nil ? "deleted upstream" : "the upstream has \(version ?? "another representation")"
    }
}
