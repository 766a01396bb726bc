// Where a pull goes and where the parts of its answer are, by a resource's description (contract §2 `delta`, `sync`).

/// How the changes of one resource are asked for and read.
package struct DeltaShape: Hashable, Sendable {
    /// Of the requests.
    package let template: DeltaTemplate
    /// The array of what is there and changed.
    let items: JSONPointer
    /// An array of what is gone, beside the items; nil where there is none.
    let tombstones: JSONPointer?
    /// The cursor that the upstream gives, in the body.
    let issued: JSONPointer
    /// Whether a further page follows.
    let more: JSONPointer
    /// Within an item.
    let id: JSONPointer
    /// Within an item; nil where the version is an ETag.
    let version: JSONPointer?
    /// Within an item: what orders changes; nil where only the upstream's own cursor does.
    let moment: JSONPointer?
    /// Within an item: set on one that is gone.
    let deleted: JSONPointer?

    /// A since-pull where the API has one, else its list by `delta`; nil when the resource has neither, or is one below another whose
    /// id nobody names.
    package init?(_ resource: Resource) {
        guard !resource.collection.contains("{"), resource.path(of: "").contains("{") == false else { return nil }
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
    /// A pointer of the configuration, which has checked it.
    static func place(_ text: String) -> JSONPointer { JSONPointer(text) ?? JSONPointer(tokens: [text]) }
}

extension JSONValue {
    /// The text of an id or a version, which APIs write as a string or as a number.
    var identifier: String? { string ?? number?.literal }

    /// Whether a marker such as `deletedAt` says yes.
    var isMarked: Bool {
        switch self {
        case .null, .bool(false), .string(""): false
        default: true
        }
    }
}
