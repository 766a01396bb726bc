// Resources of what was learned, shape by shape: paths below an item of another resource hold for all items of it
// (docs/outbox.md#learning).

/// The resources of shapes, and the shapes of each.
struct LearnedResources: Sendable {
    /// One resource with the shapes that it stands for, by their keys.
    struct Entry: Sendable {
        var resource: Resource
        var templates: ResourceTemplates
        var shapes: [String]
    }

    private(set) var entries: [Entry] = []

    /// The resources of shapes. Of two that are alike in their paths and differ in their bodies, each holds for its own path only.
    init(_ shapes: some Sequence<LearnedShape>) {
        // Parents first.
        for shape in shapes.sorted(by: { ($0.depth, $0.collection) < ($1.depth, $1.collection) }) { add(shape) }
        // The one with fewer variables is meant where both match.
        let order = entries.indices.sorted { (entries[$0].variables, $0) < (entries[$1].variables, $1) }
        entries = order.map { entries[$0] }
    }

    /// The resources, the narrower one first.
    var all: [Resource] { entries.map(\.resource) }

    /// The entry and the match of a path; nil if it is of no learned resource.
    func match(_ path: String) -> (index: Int, match: EntityMatch)? {
        let segments = path[...].pathSegments.withoutTrailingSlash
        for (index, entry) in entries.enumerated() {
            if let match = entry.templates.match(segments) { return (index, match) }
        }
        return nil
    }

    private mutating func add(_ shape: LearnedShape) {
        let wide = widened(shape)
        // What is above the list is not known yet: an item's path would tell nothing.
        if shape.isShallow, !wide.isShallow { return }
        if let same = entries.firstIndex(where: { $0.resource.collection.withoutSlash == wide.collection.withoutSlash }) {
            guard entries[same].resource.isLike(wide) else { return insert(shape.resource, of: shape) }
            var resource = entries[same].resource
            resource.learned = resource.learned.map { $0.joined(with: wide.learned ?? LearnedTraits()) }
            entries[same].shapes.append(shape.key)
            entries[same].resource = resource
            entries[same].templates = ResourceTemplates(resource)
        } else {
            insert(wide, of: shape)
        }
    }

    private mutating func insert(_ resource: Resource, of shape: LearnedShape) {
        entries.append(Entry(resource: resource, templates: ResourceTemplates(resource), shapes: [shape.key]))
    }

    /// The resource of a shape, with variables in place of the ids of the items that its path leads through.
    private func widened(_ shape: LearnedShape) -> Resource {
        var resource = shape.resource
        let segments = shape.collection[...].pathSegments.withoutTrailingSlash
        guard segments.count > 1 else { return resource }
        for count in (1..<segments.count).reversed() {
            let (above, prefix) = (Array(segments.prefix(count)), "/" + segments.prefix(count).joined(separator: "/"))
            for entry in entries {
                guard entry.resource.learned != nil, let match = entry.templates.match(above), match.isItem,
                    let item = entry.resource.item?.withoutSlash, item.hasSuffix("/{id}"),
                    shape.isShallow || shape.item.hasPrefix(prefix + "/"),
                    let name = entry.resource.collection.withoutSlash.split(separator: "/").last
                else { continue }
                let letters: Substring = name.filter { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
                guard !letters.isEmpty, !item.contains("{\(letters)_id}") else { continue }
                let parent = String(item.dropLast("{id}".count)) + "{\(letters)_id}"
                resource.collection = parent + resource.collection.dropFirst(prefix.count)
                // A link may name the item above.
                resource.learned?.made = shape.made.filter { if case .time = $0.value { true } else { false } }
                if !shape.isShallow { resource.item = parent + shape.item.dropFirst(prefix.count) }
                return resource
            }
        }
        return resource
    }
}

extension LearnedResources.Entry {
    fileprivate var variables: Int { resource.collection.count(where: { $0 == "{" }) }
}

extension LearnedTraits {
    /// What is known of a resource of two shapes. That one of them makes items is enough for both.
    fileprivate func joined(with other: LearnedTraits) -> LearnedTraits {
        LearnedTraits(
            ids: ids.joined(with: other.ids), others: others.union(other.others), isCreating: isCreating || other.isCreating,
            made: made.merging(other.made) { own, _ in own })
    }
}

extension Resource {
    /// True if bodies of both are read in the same way.
    fileprivate func isLike(_ other: Resource) -> Bool {
        items == other.items && element == other.element && id == other.id && envelope == other.envelope && content == other.content
            && item == other.item && profile == other.profile
    }
}

extension LearnedShape {
    /// True if its items are not below it: `/projects/4/tasks` and `/tasks/{id}`.
    fileprivate var isShallow: Bool { ItemPlace.all(of: item).contains { $0.isShallow(in: key) } }

    fileprivate var depth: Int { collection.count(where: { $0 == "/" }) }

    /// The resource of this path alone.
    fileprivate var resource: Resource {
        var resource = Resource(
            collection: collection, item: item, items: list.items, envelope: envelope, id: list.id, version: version, updatedAt: updatedAt)
        (resource.element, resource.content) = (list.element, content)
        resource.profile = profile
        resource.learned = LearnedTraits(ids: ids, others: others, isCreating: isCreating, made: made)
        return resource
    }
}
