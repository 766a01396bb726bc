// The request template of a pull and the pointers into its response, from a resource's description (docs/reference/configuration.md#delta
// `delta`, `sync`).

/// The request and response format of the changes of one resource.
package struct DeltaShape: Hashable, Sendable {
    /// The template of the request targets.
    package let template: DeltaTemplate
    /// The array of existing and changed items.
    let items: JSONPointer
    /// The array of deleted items beside `items`; nil where there is none.
    let tombstones: JSONPointer?
    /// The cursor that the upstream issues in the body.
    let issued: JSONPointer
    /// The flag in the body that a further page follows.
    let more: JSONPointer
    /// The id within an item.
    let id: JSONPointer
    /// The version within an item; nil where the version is an ETag.
    let version: JSONPointer?
    /// The value within an item that orders changes; nil where only the upstream's issued cursor orders them.
    let moment: JSONPointer?
    /// The marker within an item that was deleted.
    let deleted: JSONPointer?

    /// True if pages name deleted entities, so that they may state when each was deleted.
    package var statesDeletions: Bool { deleted != nil || tombstones != nil }

    /// Uses the since-pull where the API has one, otherwise its list by `delta`. Nil when the resource has neither, or is nested below a
    /// parent whose id is unknown.
    package init?(_ resource: Resource) {
        guard !resource.isSingleton, !resource.collection.contains("{"), resource.path(of: "").contains("{") == false else { return nil }
        let (delta, sync) = (resource.delta, resource.sync)
        if let sync, let pull = sync.pull {
            template = DeltaTemplate(pull)
            items = .place(sync.items)
            tombstones = .place(sync.tombstones)
            issued = .place(sync.cursor)
            more = .place(sync.more)
        } else if let delta {
            template = DeltaTemplate("\(resource.collection)?\(delta.query)")
            items = .place(resource.items)
            tombstones = nil
            issued = .place("/cursor")
            more = .place("/hasMore")
        } else {
            return nil
        }
        id = .place(resource.id)
        version = resource.version == "etag" ? nil : .place(resource.version)
        moment = (delta?.cursor ?? resource.updatedAt).map(JSONPointer.place)
        deleted = delta?.deleted.map(JSONPointer.place)
    }
}

extension JSONPointer {
    /// Converts a pointer of the configuration, which has validated it.
    static func place(_ text: String) -> JSONPointer { JSONPointer(text) ?? JSONPointer(tokens: [text]) }
}

extension JSONValue {
    /// The text of an id or a version, which APIs write as a string or as a number.
    var identifier: String? { string ?? number?.literal }

    /// True if a marker such as `deletedAt` is set.
    var isMarked: Bool {
        switch self {
        case .null, .bool(false), .string(""): false
        default: true
        }
    }
}
