// A collection as its client sees it: the cached response with the client's own creates, changes and deletes (docs/outbox.md#reads).
import HTTPTypes
import OrderedCollections

/// Read-your-writes for collections. Computed at every read, never written into the cache.
package enum CollectionFold {
    /// Folds the writes into the whole body of the cached response for `query` (raw, nil for none). `writes` are those of all items of the
    /// collection in order of acceptance: all that are open, and delivered ones until the cached copy was fetched after their delivery.
    package static func fold(_ base: JSONValue, query: String?, with writes: [FoldedWrite], resource: Resource) -> CollectionOutcome {
        let shape = RepresentationShape(resource)
        if shape.rowEquality != nil, shape.items.get(in: base)?.array == nil, base.object != nil {
            return row(base, with: writes, resource: resource, shape: shape)
        }
        guard let items = shape.items.get(in: base)?.array else {
            return CollectionOutcome(value: base, last: writes.map(\.sequence).max(), count: writes.count, isDirty: !writes.isEmpty)
        }
        var folding = CollectionFolding(base, elements: items, query: query, shape: shape)
        var writes = writes
        if let emptying = writes.lastIndex(where: \.emptiesCollection) {
            folding.removeAll(by: writes[emptying])
            writes.removeSubrange(...emptying)
        }
        var byItem: OrderedDictionary<String, [FoldedWrite]> = [:]
        for write in writes {
            if let id = write.id ?? write.answer.flatMap({ shape.idText(in: shape.unwrapped($0)) }) {
                byItem[id, default: []].append(write)
            } else {
                folding.fold([write], of: nil)
            }
        }
        for (id, writes) in byItem { folding.fold(writes, of: id) }
        return folding.outcome()
    }
}

extension CollectionFold {
    /// A row whose client asked for it alone, with the writes to it.
    private static func row(
        _ base: JSONValue, with writes: [FoldedWrite], resource: Resource, shape: RepresentationShape
    ) -> CollectionOutcome {
        let own = writes.filter { $0.id == nil || $0.id == shape.idText(in: base) }
        return switch ItemFold.fold(base, with: own, resource: resource) {
        case .unchanged: CollectionOutcome(value: base)
        case .present(let value, let last, let count): CollectionOutcome(value: value, last: last, count: count)
        case .deleted(let last, let count): CollectionOutcome(value: base, last: last, count: count, isDirty: true)
        case .dirty(let value, let last, let count): CollectionOutcome(value: value ?? base, last: last, count: count, isDirty: true)
        }
    }
}

/// The state of one collection while items are folded into it.
private struct CollectionFolding {
    private let query: CollectionQuery
    private let shape: RepresentationShape
    private let frame: CollectionFrame
    /// The elements of the base's list.
    private let elements: [JSONValue]
    /// The items of the base; nil where one was removed.
    private var items: [JSONValue?]
    private var places: [String: Int] = [:]
    private var added: [JSONValue] = []
    /// The places of items that an open create of this client has made.
    private var claimed: Set<Int> = []
    /// The number of items by which other pages of the list have grown.
    private var elsewhere = 0
    /// The ids in `items` and `added`.
    private var shown: Set<String> = []
    private var result: CollectionOutcome

    init(_ base: JSONValue, elements: [JSONValue], query: String?, shape: RepresentationShape) {
        let items = elements.map(shape.listed)
        self.elements = elements
        self.query = CollectionQuery(query, items: items, equality: shape.rowEquality)
        self.shape = shape
        frame = CollectionFrame(base, items: items, shape: shape)
        self.items = items
        result = CollectionOutcome(value: base)
        for (place, item) in items.enumerated() {
            if let id = shape.idText(in: item), places[id] == nil { places[id] = place }
        }
        shown = Set(places.keys)
    }

    /// Removes every item, as a write to the whole collection does.
    mutating func removeAll(by write: FoldedWrite) {
        items = items.map { _ in nil }
        (places, shown) = ([:], [])
        result.last = write.sequence
        result.count += 1
    }

    mutating func fold(_ writes: [FoldedWrite], of id: String?) {
        var place = id.flatMap { places[$0] }
        // An item of another list, for all that is known.
        if place == nil, shape.isShallow, writes.allSatisfy(\.isItem) { return }
        var item = ItemProjection(place.flatMap { items[$0] }.map { .present($0) } ?? .unknown, shape: shape)
        for write in writes { item.apply(write) }
        if place == nil, let create = writes.first, !create.isItem, create.mayBeShown {
            let new = newPlaces(since: create)
            place = new?.first { created(by: create, is: items[$0]) }
            if let place { claimed.insert(place) }
            result.isDirty = result.isDirty || place == nil && new?.isEmpty != true
        }
        guard item.count > 0 else { return }
        if let place { update(place, to: item) } else { admit(item, with: writes) }
    }

    /// The places of items that were not there when a create was sent; nil if that is not known.
    private func newPlaces(since create: FoldedWrite) -> [Int]? {
        create.idsBefore.map { before in
            items.indices.filter { place in
                guard !claimed.contains(place), let id = items[place].flatMap({ shape.idText(in: $0) }) else { return false }
                return !before.contains(id)
            }
        }
    }

    /// True if an item has every member that a create has given it.
    private func created(by create: FoldedWrite, is item: JSONValue?) -> Bool {
        guard let item, case .create(let object) = WriteEffect(create, shape: shape), let members = object.object else { return false }
        return members.allSatisfy { shape.id == JSONPointer(tokens: [$0.name]) || item[$0.name] == $0.value }
    }

    private mutating func update(_ place: Int, to item: ItemProjection) {
        guard case .present(let object) = item.state else {
            items[place] = nil
            return result.note(item, isDirty: item.isDirty)
        }
        let fit = query.fit(object)
        let versioned = item.isLocal ? LocalVersions(shape).marked(object, after: item.last) : object
        items[place] = fit == .no ? nil : shape.marked(versioned, as: item.waiting)
        result.note(item, isDirty: item.isDirty || fit == .unknown)
    }

    /// Adds an item that the base does not contain, because it is new, on another page, or did not match the query.
    private mutating func admit(_ item: ItemProjection, with writes: [FoldedWrite]) {
        let mayBeNew = item.isNew || writes.contains { $0.isItem ? $0.method == .put : true }
        switch item.state {
        case .absent:
            // It was on another page, and the totals count it no more.
            let isElsewhere = frame.isPartial && frame.hasTotals && !query.selects && writes.allSatisfy(\.isItem)
            if isElsewhere { elsewhere -= 1 }
            if item.isDirty || isElsewhere { result.note(item, isDirty: item.isDirty) }
        case .unknown: if mayBeNew || query.selects { result.note(item, isDirty: true) }
        case .present(let object):
            guard mayBeNew || query.selects else { return }
            guard let id = shape.idText(in: object) else { return result.note(item, isDirty: true) }
            guard !shown.contains(id) else { return }
            let isKnownPlace = query.isFirstPage && (item.isNew || !frame.isPartial)
            switch query.fit(object) {
            case .no: if item.isDirty { result.note(item, isDirty: true) }
            case .yes where isKnownPlace:
                added.append(shape.marked(object, as: item.waiting))
                shown.insert(id)
                result.note(item, isDirty: item.isDirty || query.isShaped)
            case .yes, .unknown:
                if item.isNew, !query.isFirstPage, case .yes = query.fit(object) { elsewhere += 1 }
                result.note(item, isDirty: true)
            }
        }
    }

    func outcome() -> CollectionOutcome {
        var result = result
        let kept = zip(items, elements).compactMap { item, element in item.map { shape.asElement($0, in: element) } }
        let added = added.map { shape.asElement($0, in: nil) }
        result.growth = kept.count + added.count - items.count + elsewhere
        result.value = frame.filled(growth: result.growth, with: frame.isNewestFirst ? added.reversed() + kept : kept + added)
        return result
    }
}
