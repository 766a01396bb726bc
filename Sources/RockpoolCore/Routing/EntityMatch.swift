// The entity a request refers to: a declared resource with a matching path template, or a guess for writes
// (docs/reference/configuration.md#resources `resources`, docs/outbox.md#lanes).

/// The entity of a request. Operations of one entity share a lane.
package struct EntityMatch: Hashable, Sendable {
    /// The declared resource; nil if the entity was guessed from the path.
    package var resource: Resource?
    /// The path of the entity, `/v1/notes/17`, or of the collection, without trailing slash and action, under its canonical spelling; with the
    /// query where that names the entity, and without any other.
    package var path: String
    /// The id of the path, percent-decoded, as representations have it; empty for a singleton, nil for a collection and for a guess.
    package var id: String?
    /// The segment after the id in a write: `publish` of `POST /v1/notes/17/publish`.
    package var action: String?
    /// True if the path is that of one item, not of a collection.
    package var isItem: Bool
    /// The path of the collection, or of the collection that contains the item; nil for a guess and for a singleton.
    package var collection: String?
    /// The name of that collection: its path, without a suffix and with keys as segments, so that the names of the entities below an item begin
    /// with the item's. That of a singleton is its path; nil for a guess.
    package var name: String?
    /// The path below which the entities of the item are; nil if there are none.
    package var stem: String?

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
        name = collection
    }

    /// The entity of an undeclared write: the path of PUT, PATCH and DELETE is the item, that of POST the collection.
    static func guessed(method: String, segments: [Substring]) -> EntityMatch {
        EntityMatch(path: joined(segments), isItem: ["PUT", "PATCH", "DELETE"].contains(method))
    }

    /// The target of a request for the entity: its path, with the slash at the end that its resource declares.
    package var target: String {
        let template = isItem ? resource?.item : resource?.collection
        return template?.hasSuffix("/") == true && !path.hasSuffix("/") ? path + "/" : path
    }

    /// The target of a request for its collection; nil where that is not known.
    var listTarget: String? {
        guard let collection else { return nil }
        return resource?.collection.hasSuffix("/") == true && collection != "/" ? collection + "/" : collection
    }

    /// Returns the item that a read of its collection selects by its query alone; nil for any other read.
    /// - Parameter target: path and query of the read.
    package func row(selectedBy target: String) -> EntityMatch? {
        guard !isItem, let resource, resource.namesRows, !target.utf8.contains(UInt8(ascii: "&")) else { return nil }
        return ResourceTemplates(resource).match(target: target).flatMap { $0.isItem ? $0 : nil }
    }

    /// The path of consecutive segments of the same original path.
    fileprivate static func joined(_ segments: some BidirectionalCollection<Substring>) -> String {
        guard let first = segments.first, let last = segments.last else { return "/" }
        return "/" + first.base[first.startIndex..<last.endIndex]
    }
}

/// The path templates of one resource, split once.
struct ResourceTemplates: Hashable, Sendable {
    let resource: Resource
    /// nil for a singleton.
    private let collection: PathTemplate?
    private let item: PathTemplate
    /// The places of the id's variables in `item`.
    private let idPlaces: [Int]
    /// The text that follows the id in the item's path and ends the collection's, too: `.json`.
    private let suffix: Substring
    /// The name that all lists of items outside of them share: `/tasks` of `/projects/{project}/tasks` and `/tasks/{id}`. Nil where the path of
    /// an item tells its list.
    private let sharedName: String?

    init(_ resource: Resource) {
        self.resource = resource
        collection = resource.isSingleton ? nil : PathTemplate(resource.collection)
        item = PathTemplate(resource.item ?? resource.collection + "/{id}")
        idPlaces = resource.isSingleton ? [] : Self.idPlaces(item, collection?.variables ?? [])
        let after = item.segments.last.flatMap { $0.names.isEmpty || $0.isKey ? nil : $0.literals.last } ?? ""
        let isShared = !after.isEmpty && collection?.segments.last?.literals.last?.hasSuffix(after) == true
        suffix = isShared ? after : ""
        sharedName = resource.isShallow ? Self.nameAbove(item) : nil
    }

    /// The path above the id that ends an item's path; nil if it has other variables.
    private static func nameAbove(_ item: PathTemplate) -> String? {
        let above = item.segments.dropLast()
        guard item.row == nil, item.variables.count == 1, !above.isEmpty, above.allSatisfy(\.names.isEmpty) else { return nil }
        return "/" + above.map { $0.literals[0] }.joined(separator: "/")
    }

    /// The places of the variables that make up an item's id: of those that its collection does not have `{id}`, else all; else the last one.
    static func idPlaces(_ item: PathTemplate, _ above: [String]) -> [Int] {
        let own = item.variables.indices.filter { !above.contains(item.variables[$0]) }
        if let place = own.last(where: { item.variables[$0] == "id" }) { return [place] }
        return own.isEmpty ? item.variables.indices.suffix(1).map(\.self) : own
    }

    /// True if the query, not the path, names an item.
    var isOfRows: Bool { item.row != nil }

    /// Matches a whole path. The collection has precedence: if both templates match, the literal one is meant.
    /// - Parameter query: names the row of a write; nil for a read, which lists rows.
    func match(_ path: [Substring], query: Substring? = nil) -> EntityMatch? {
        if isOfRows, let query, let values = item.values(of: path, query: query) {
            return itemMatch(path[...], values: values, action: nil)
        }
        if let collection, let values = collection.values(of: path) {
            let joined = EntityMatch.joined(path)
            var match = EntityMatch(resource: resource, path: joined, isItem: false, collection: joined)
            match.name = sharedName ?? name(of: collection, values, path: joined)
            return match
        }
        return isOfRows ? nil : item.values(of: path).map { itemMatch(path[...], values: $0, action: nil) }.flatMap(admitted)
    }

    /// Matches the target of a request, or of a reference to an item.
    func match(target: String) -> EntityMatch? {
        let path = target.prefix { $0 != "?" }
        let query = path.endIndex < target.endIndex ? target[path.endIndex...].dropFirst() : nil
        return match(path.pathSegments.withoutTrailingSlash, query: query)
    }

    /// Matches an item's path followed by one more segment; a suffix of items may be there, or at the end of that segment.
    func matchAction(_ path: [Substring]) -> EntityMatch? {
        guard let action = path.last, !isOfRows else { return nil }
        if let values = item.values(of: path.dropLast()) {
            return admitted(itemMatch(path.dropLast(), values: values, action: String(action)))
        }
        guard !suffix.isEmpty, let id = path.dropLast().last else { return nil }
        let values = item.values(of: Array(path.dropLast(2)) + [Substring(id + suffix)])
        let name = action.hasSuffix(suffix) ? action.dropLast(suffix.count) : action
        return values.map { itemMatch(path.dropLast(), values: $0, action: String(name)) }.flatMap(admitted)
    }

    /// The target of the item with this id, percent-encoded. Other variables have the values of those of the same name in `path`, a path of
    /// the collection; nil if one of them has no value there.
    func itemTarget(id: ServerID, in path: [Substring]) -> String? {
        let above = collection?.values(of: path)
        let ids = idPlaces.count == 1 ? [id.text] : id.text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        guard ids.count == idPlaces.count else { return nil }
        var values: [String] = []
        for (index, name) in item.variables.enumerated() {
            if let place = idPlaces.firstIndex(of: index) {
                let key = isQuoted(index) ? ids[place].replacing("'", with: "''") : ids[place]
                values.append(ServerID(text: key).percentEncoded)
            } else if let above, let place = collection?.variables.firstIndex(of: name) {
                values.append(String(above[place]))
            } else {
                return nil
            }
        }
        return item.target(values)
    }

    // MARK: - Parts of a match

    /// The match of an item; nil if its resource was learned, and its id is not of the form that was learned.
    private func admitted(_ match: EntityMatch) -> EntityMatch? {
        guard let learned = resource.learned, let id = match.id else { return match }
        return learned.ids.admits(id) && !learned.others.contains(id) ? match : nil
    }

    private func itemMatch(_ path: ArraySlice<Substring>, values: [Substring], action: String?) -> EntityMatch {
        let target = suffix.isEmpty && !isOfRows ? EntityMatch.joined(path) : withoutSlash(item.target(values))
        let ids = idPlaces.map { place in
            let text = values[place].keyText(isKey: isKey(place))
            return isQuoted(place) ? text.replacing("''", with: "'") : text
        }
        let collectionPath = collectionPath(of: values)
        var match = EntityMatch(
            resource: resource, path: target, id: ids.joined(separator: ","), action: action, isItem: true,
            collection: resource.isSingleton ? nil : collectionPath)
        if resource.isSingleton {
            match.name = withoutSlash(target)
            match.stem = match.name
        } else if let sharedName {
            (match.name, match.stem) = (sharedName, target)
        } else if let collection, let above = valuesAbove(values), let collectionPath {
            match.name = name(of: collection, above, path: collectionPath)
            match.stem = isOfRows ? nil : String(target.dropLast(suffix.count))
        }
        return match
    }

    /// The values of the collection's variables, by an item's; nil if the item template lacks one of them.
    private func valuesAbove(_ values: [Substring]) -> [Substring]? {
        var above: [Substring] = []
        for name in collection?.variables ?? [] {
            guard let place = item.variables.firstIndex(of: name), !idPlaces.contains(place) else { return nil }
            above.append(values[place])
        }
        return above
    }

    private func collectionPath(of values: [Substring]) -> String? {
        guard let collection, let above = valuesAbove(values) else { return nil }
        return withoutSlash(collection.target(above))
    }

    private func name(of collection: PathTemplate, _ values: [Substring], path: String) -> String {
        guard !suffix.isEmpty || collection.segments.contains(where: \.isKey) else { return path }
        var (rest, name) = (values[...], "")
        for segment in collection.segments {
            guard segment.isKey else {
                name += "/" + segment.filled(from: &rest)
                continue
            }
            let ids = segment.names.map { _ in (rest.popFirst() ?? "").keyText(isKey: true) }
            name += "/" + segment.literals[0].prefix { $0 != "(" } + "/" + ServerID(text: ids.joined(separator: ",")).percentEncoded
        }
        return name.hasSuffix(suffix) ? String(name.dropLast(suffix.count)) : name
    }

    private func withoutSlash(_ path: String) -> String { path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path }

    private func isKey(_ variable: Int) -> Bool { text(of: variable)?.isKey == true }

    /// True if the template itself quotes the variable.
    private func isQuoted(_ variable: Int) -> Bool { text(of: variable)?.literals.first?.hasSuffix("'") == true }

    /// The segment or the value of the parameter that has a variable.
    private func text(of variable: Int) -> TemplateText? {
        var before = 0
        for text in item.segments + [item.row?.value].compactMap(\.self) {
            before += text.names.count
            if variable < before { return text }
        }
        return nil
    }
}

extension Resource {
    /// True if it is one item without a collection: `/me`.
    package var isSingleton: Bool { collection.isEmpty }

    /// True if the path of an item does not tell in which of several lists it is: `/projects/{project}/tasks` and `/tasks/{id}`.
    package var isShallow: Bool {
        guard collection.contains("{"), let item else { return false }
        return PathTemplate(collection).variables.contains { !item.contains("{\($0)}") }
    }

    /// True if the query, not the path, names its items.
    package var namesRows: Bool { rowEquality != nil }

    /// What the paths of its lists and of its items begin with, before the first variable.
    package var pathPrefixes: Set<String> {
        Set([collection, item].compactMap(\.self).filter { !$0.isEmpty }.map { String($0.prefix { $0 != "{" && $0 != "?" }) })
    }

    /// True if a target, or its path, is that of a list or an item.
    package func shows(_ target: Substring) -> Bool { ResourceTemplates(self).match(target: String(target)) != nil }

    /// True if a target is that of a list.
    package func isList(_ target: String) -> Bool { ResourceTemplates(self).match(target: target)?.isItem == false }

    /// What names it in reports and stores: the path of its collection, or of the singleton.
    package var label: String { isSingleton ? item ?? "" : collection }

    /// The members of an item that make up its id: `id`; for an item whose path has several variables of its own, those members.
    var idPlaces: [JSONPointer] {
        guard let item, !isSingleton, !item.contains("{id}") || collection.contains("{id}") else {
            return [JSONPointer(id) ?? JSONPointer(tokens: ["id"])]
        }
        let template = PathTemplate(item)
        let places = ResourceTemplates.idPlaces(template, PathTemplate(collection).variables)
        guard places.count > 1 else { return [JSONPointer(id) ?? JSONPointer(tokens: ["id"])] }
        return places.map { JSONPointer(tokens: [template.variables[$0]]) }
    }

    /// What stands before a value in a query that selects rows by equality, `eq.`; nil unless the query names items.
    var rowEquality: String? { item.flatMap { $0.contains("?") ? PathTemplate($0).row?.equality : nil } }
}

extension IdentifierForm {
    /// True if an id has this form, or was minted here.
    fileprivate func admits(_ id: String) -> Bool { self == .text || IdentifierForm(id) == self || LocalID(id) != nil }
}

// MARK: - Paths with the same permissions

/// A group of paths with the same permissions.
package enum CrossOriginScope {
    /// Maximum length in bytes of a group's name; longer paths have no remembered permissions.
    private static let limit = 1024

    /// The name of the group: the declared resource, or the path with `*` in place of ids. Nil if the path is too long.
    package static func name(of request: RequestHead, entity: EntityMatch?) -> String? {
        if let resource = entity?.resource { return resource.label }
        let segments = request.target.prefix { $0 != "?" }.split(separator: "/", omittingEmptySubsequences: false)
        let name = segments.map { isID($0) ? "*" : $0 }.joined(separator: "/")
        return name.utf8.count <= limit ? name : nil
    }

    /// True for a segment that names one of many entities: a number, a UUID, a local id, or at least 16 letters and digits with a digit.
    private static func isID(_ segment: Substring) -> Bool {
        guard segment.utf8.contains(where: FieldByte.isDigit) else { return false }
        if segment.utf8.allSatisfy(FieldByte.isDigit) || LocalID(segment) != nil { return true }
        return segment.utf8.count >= 16
            && segment.utf8.allSatisfy { FieldByte.isDigit($0) || FieldByte.isLetter($0) || $0 == 0x2D || $0 == 0x5F }
    }
}
