// The entity a request refers to: a declared resource with a matching path template, or a guess for writes
// (docs/reference/configuration.md#resources `resources`,
// docs/outbox.md#lanes).

/// The entity of a request. Operations of one entity share a lane.
package struct EntityMatch: Hashable, Sendable {
    /// The declared resource; nil if the entity was guessed from the path.
    package var resource: Resource?
    /// The path of the entity, `/v1/notes/17`, or of the collection, without query, trailing slash and action, under its canonical spelling.
    package var path: String
    /// The id of the path, percent-decoded, as representations have it; nil for a collection and for a guess.
    package var id: String?
    /// The segment after the id in a write: `publish` of `POST /v1/notes/17/publish`.
    package var action: String?
    /// True if the path is that of one item, not of a collection.
    package var isItem: Bool
    /// The path of the collection, or of the collection that contains the item; nil for a guess.
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

    /// The entity of an undeclared write: the path of PUT, PATCH and DELETE is the item, that of POST the collection.
    static func guessed(method: String, segments: [Substring]) -> EntityMatch {
        EntityMatch(path: joined(segments), isItem: ["PUT", "PATCH", "DELETE"].contains(method))
    }

    /// The path of consecutive segments of the same original path.
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
    /// The position of `{id}` in `item`, else of the last parameter.
    private let idPlace: Int?

    init(_ resource: Resource) {
        self.resource = resource
        collection = resource.collection.canonicalEscapes[...].entitySegments
        item = resource.item.map { $0.canonicalEscapes[...].entitySegments } ?? collection + ["{id}"]
        idPlace = item.lastIndex(of: "{id}") ?? item.lastIndex(where: \.isParameter)
    }

    /// Matches a whole path. The collection has precedence: if both templates match, the literal one is meant.
    func match(_ path: [Substring]) -> EntityMatch? {
        if Self.fits(path, template: collection) {
            let joined = EntityMatch.joined(path)
            return EntityMatch(resource: resource, path: joined, isItem: false, collection: joined)
        }
        return Self.fits(path, template: item) ? itemMatch(path[...], action: nil) : nil
    }

    /// Matches an item's path followed by one more segment.
    func matchAction(_ path: [Substring]) -> EntityMatch? {
        guard let action = path.last, Self.fits(path.dropLast(), template: item) else { return nil }
        return itemMatch(path.dropLast(), action: String(action))
    }

    /// The path of the item with this percent-encoded id. Other parameters take the values of those of the same name in `path`, a path of
    /// the collection; nil if one of them has no value there.
    func itemPath(id: String, in path: [Substring]) -> String? {
        let isOfCollection = Self.fits(path, template: collection)
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
            resource: resource, path: EntityMatch.joined(path),
            id: idPlace.map { path[$0].percentDecoded ?? String(path[$0]) }, action: action, isItem: true,
            collection: collectionPath(of: path))
    }

    /// The collection template with the parameter values of an item's path; nil if the item template lacks one of the parameters.
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

    private static func fits(_ path: some Collection<Substring>, template: [Substring]) -> Bool {
        path.count == template.count && zip(path, template).allSatisfy { $1.isParameter ? !$0.isEmpty : $0 == $1 }
    }
}

extension Substring {
    fileprivate var isParameter: Bool { utf8.first == UInt8(ascii: "{") && utf8.last == UInt8(ascii: "}") }

    /// The segments of a path; a trailing slash is ignored.
    fileprivate var entitySegments: [Substring] { pathSegments.withoutTrailingSlash }
}

extension [Substring] {
    /// The segments without the empty one that a trailing slash produces.
    var withoutTrailingSlash: [Substring] { last?.isEmpty == true ? dropLast() : self }
}
