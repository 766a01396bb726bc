// Which entity a request is about: the declared resource whose templates its path fits, or a guess for writes
// (contract §2 `resources`, outbox.md §1.8).

/// The entity of a request. Operations of one entity share a lane.
package struct EntityMatch: Hashable, Sendable {
    /// The declared resource; nil when the entity was guessed from the path.
    package var resource: Resource?
    /// The entity's path, `/v1/notes/17`, or the collection's, without query, trailing slash or action.
    package var path: String
    /// The path segment that is the id, as it came; nil for a collection and for a guess.
    package var id: String?
    /// What follows the id in a write: `publish` of `POST /v1/notes/17/publish`.
    package var action: String?
    /// Whether the path is that of one item, not of a collection.
    package var isItem: Bool
    /// The path of the collection: its own, or the one the item is in; nil for a guess.
    package var collection: String?

    /// A match; without a resource it is a guess.
    package init(
        resource: Resource? = nil, path: String, id: String? = nil, action: String? = nil, isItem: Bool, collection: String? = nil
    ) {
        self.resource = resource
        self.path = path
        self.id = id
        self.action = action
        self.isItem = isItem
        self.collection = collection
    }

    /// The entity of a write nobody declared: PUT, PATCH and DELETE name it, POST names what it is added to.
    static func guessed(method: String, segments: [Substring]) -> EntityMatch {
        EntityMatch(path: joined(segments), isItem: ["PUT", "PATCH", "DELETE"].contains(method))
    }

    /// The path that neighbouring segments of one path were cut from.
    fileprivate static func joined(_ segments: some BidirectionalCollection<Substring>) -> String {
        guard let first = segments.first, let last = segments.last else { return "/" }
        return "/" + first.base[first.startIndex..<last.endIndex]
    }
}

/// The path templates of one resource, split once.
struct ResourceTemplates: Hashable, Sendable {
    private let resource: Resource
    private let collection: [Substring]
    private let item: [Substring]
    /// Where `{id}` stands in `item`, else the last parameter.
    private let idPlace: Int?

    init(_ resource: Resource) {
        self.resource = resource
        collection = resource.collection[...].entitySegments
        item = resource.item.map { $0[...].entitySegments } ?? collection + ["{id}"]
        idPlace = item.lastIndex(of: "{id}") ?? item.lastIndex(where: \.isParameter)
    }

    /// The match of a whole path. The collection comes first: where both templates fit, the literal one is meant.
    func match(_ path: [Substring]) -> EntityMatch? {
        if Self.fits(path, collection) {
            let joined = EntityMatch.joined(path)
            return EntityMatch(resource: resource, path: joined, isItem: false, collection: joined)
        }
        return Self.fits(path, item) ? itemMatch(path[...], action: nil) : nil
    }

    /// The match of an item's path with one segment behind it.
    func matchAction(_ path: [Substring]) -> EntityMatch? {
        guard let action = path.last, Self.fits(path.dropLast(), item) else { return nil }
        return itemMatch(path.dropLast(), action: String(action))
    }

    /// The path of the item with this id, which is percent-encoded. Other parameters are those of the same name in `path`, a path of
    /// the collection; nil when there are others.
    func itemPath(id: String, in path: [Substring]) -> String? {
        let isOfCollection = Self.fits(path, collection)
        var segments: [Substring] = []
        for (index, segment) in item.enumerated() {
            if index == idPlace {
                segments.append(id[...])
            } else if !segment.isParameter {
                segments.append(segment)
            } else if isOfCollection, let place = collection.firstIndex(of: segment) {
                segments.append(path[place])
            } else {
                return nil
            }
        }
        return "/" + segments.joined(separator: "/")
    }

    private func itemMatch(_ path: ArraySlice<Substring>, action: String?) -> EntityMatch {
        EntityMatch(
            resource: resource, path: EntityMatch.joined(path), id: idPlace.map { String(path[$0]) }, action: action, isItem: true,
            collection: collectionPath(of: path))
    }

    /// The collection template with its parameters as they stand in an item's path; nil when the item's has no such parameter.
    private func collectionPath(of path: ArraySlice<Substring>) -> String? {
        var segments: [Substring] = []
        for segment in collection {
            guard segment.isParameter else {
                segments.append(segment)
                continue
            }
            guard let place = item.firstIndex(of: segment), place != idPlace else { return nil }
            segments.append(path[path.startIndex + place])
        }
        return "/" + segments.joined(separator: "/")
    }

    private static func fits(_ path: some Collection<Substring>, _ template: [Substring]) -> Bool {
        path.count == template.count && zip(path, template).allSatisfy { $1.isParameter ? !$0.isEmpty : $0 == $1 }
    }
}

extension Substring {
    fileprivate var isParameter: Bool { utf8.first == UInt8(ascii: "{") && utf8.last == UInt8(ascii: "}") }

    /// The segments of a path; one trailing slash makes no other entity.
    fileprivate var entitySegments: [Substring] { pathSegments.withoutTrailingSlash }
}

extension [Substring] {
    /// Without the empty segment a trailing slash leaves.
    var withoutTrailingSlash: [Substring] { last?.isEmpty == true ? dropLast() : self }
}
