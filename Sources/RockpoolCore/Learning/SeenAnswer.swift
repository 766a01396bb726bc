// An answer from which something may be learned: the entity in it, its place in a collection, and lists (docs/outbox.md#learning).
import HTTPTypes

/// The answer of an upstream to a read, or to a write that may have made an item.
package struct SeenAnswer: Sendable {
    /// True for the answer to a POST.
    let isCreate: Bool
    /// The path, in the spelling that all equivalent ones share.
    let path: String
    /// True if the request had a query.
    let hasQuery: Bool
    /// The identity whose answer it is; empty for one that all share.
    let owner: String
    /// nil where the answer has no body of JSON.
    let body: JSONValue?
    let profile: Profile?
    let hasETag: Bool
    /// The members of the object that a create has sent; empty for a read, and where it has sent none.
    private(set) var written: Set<String> = []
    /// The time of the answer by the clock of its server; nil if it does not say it.
    let answeredAt: Timestamp?
    /// The path of what was made, as the answer names it.
    let location: String?

    /// The answer to a GET that was stored. nil if nothing can be learned of it.
    /// - Parameter owner: the name of the partition in which it is stored.
    package init?(target: String, answer: ResponseHead, body: JSONValue, owner: String) {
        let path = target.prefix { $0 != "?" }
        guard answer.status == 200, MediaType.isJSON(answer.fields), let plain = ItemPlace.plain(String(path)) else { return nil }
        self.init(
            isCreate: false, path: plain, hasQuery: path.endIndex < target.endIndex, owner: owner, body: body, answer: answer, location: nil
        )
    }

    /// The answer to a POST that took effect. nil for any other write, and for an answer that may not be stored.
    /// - Parameter owner: the name of the identity's partition.
    package init?(_ write: AnsweredWrite, owner: String) {
        guard write.request.method == .post, write.evidence == .answer, write.outcome == .applied,
            !CacheControl(write.answer.fields).noStore,
            !CacheControl(request: write.request.fields).noStore, let plain = ItemPlace.plain(write.request.path)
        else { return nil }
        let named = write.answer.fields.single(.location).flatMap {
            URIReference.resolve($0, origin: write.request.origin, target: write.request.target)
        }
        let location = named?.dropFirst(write.request.origin.url.count).prefix { $0 != "?" }
        // Other statuses name what the write has begun, or carry nothing.
        let makes = [200, 201].contains(write.answer.status)
        self.init(
            isCreate: true, path: plain, hasQuery: write.request.query != nil, owner: owner,
            body: makes && MediaType.isJSON(write.answer.fields) ? write.answerJSON : nil, answer: write.answer,
            location: makes ? location.flatMap { ItemPlace.plain(String($0)) } : nil)
        if makes, let sent = write.body, let object = (try? JSONValue.parse(sent))?.object { written = ReadList.members(of: object) }
    }

    private init(
        isCreate: Bool, path: String, hasQuery: Bool, owner: String, body: JSONValue?, answer: ResponseHead, location: String?
    ) {
        (self.isCreate, self.path, self.hasQuery, self.owner, self.body) = (isCreate, path, hasQuery, owner, body)
        answeredAt = answer.fields.single(.date).flatMap { HTTPDate.parse($0) }
        (profile, hasETag, self.location) = (Profile(of: answer.fields), answer.fields.contains(.eTag), location)
    }
}

extension Profile {
    /// The format that the media type names; nil for JSON of no known format.
    init?(of fields: HTTPFields) {
        guard let essence = MediaType.essence(of: fields) else { return nil }
        if essence == "application/json" {
            guard fields.value(of: "content-type")?.contains("odata.") == true else { return nil }
            self = .odata
        } else {
            guard let profile = Self.allCases.first(where: { $0.mediaType == essence }) else { return nil }
            self = profile
        }
    }
}

/// An object that was read, or that a create has made, before it is known whose item it is.
struct SeenItem: Hashable, Sendable {
    /// The most objects of a body that may be its entity.
    private static let readingLimit = 4

    /// One object of the body that has an id.
    struct Reading: Hashable, Sendable {
        /// The pointer to it.
        let envelope: String
        /// The ids that it has, by their pointers.
        let ids: [String: String]
        let members: Set<String>
        /// The pointer, within the object, to the one object with all members that a create has sent, which the object itself has not.
        let content: String?
        /// What the API has made of the object, beside what a create has sent.
        let made: [String: MadeMember]
    }

    let isCreate: Bool
    let path: String
    /// The ways to read the path of the item; empty for a create whose answer does not name it.
    let places: [ItemPlace]
    let readings: [Reading]
    let hasETag: Bool
    let profile: Profile?

    /// The entity of an answer; nil if it shows none.
    init?(_ seen: SeenAnswer) {
        guard let body = seen.body, body.object != nil else { return nil }
        let inner = body.object?.prefix(ReadList.memberLimit).map { JSONPointer(tokens: [$0.name]) } ?? []
        let readings = ([JSONPointer(tokens: [])] + inner).lazy.compactMap { Self.reading(of: body, at: $0, seen) }
        self.readings = Array(readings.prefix(Self.readingLimit))
        guard !self.readings.isEmpty else { return nil }
        (isCreate, path, hasETag, profile) = (seen.isCreate, seen.path, seen.hasETag, seen.profile)
        places = seen.isCreate ? seen.location.map(ItemPlace.all) ?? [] : ItemPlace.all(of: seen.path)
    }

    private static func reading(of body: JSONValue, at place: JSONPointer, _ seen: SeenAnswer) -> Reading? {
        guard let value = place.get(in: body), let object = value.object else { return nil }
        let ids = CommonMembers.ids.compactMap { name in
            object[name]?.entityID.map { (JSONPointer(tokens: [name]).text, $0) }
        }
        guard !ids.isEmpty else { return nil }
        return Reading(
            envelope: place.text, ids: Dictionary(ids) { first, _ in first }, members: ReadList.members(of: object),
            content: content(of: object, written: seen.written),
            made: MadeMember.all(in: object, written: seen.written, id: ids[0].1, answeredAt: seen.answeredAt))
    }

    /// The pointer to the only member that has all of what a create has sent; nil if the object itself has some of it.
    static func content(of object: JSONObject, written: Set<String>) -> String? {
        guard !written.isEmpty, written.allSatisfy({ object[$0] == nil }) else { return nil }
        let found = object.prefix(ReadList.memberLimit).filter { _, value in
            value.object.map { inner in written.allSatisfy { inner[$0] != nil } } ?? false
        }
        return found.count == 1 ? found.first.map { JSONPointer(tokens: [$0.name]).text } : nil
    }

    /// The object with this id that has the members of a list's entries: at least half of them.
    func reading(like list: ReadList, id: String?) -> Reading? {
        readings.first { reading in
            guard let own = reading.ids[list.shape.id], id == nil || own == id else { return false }
            return list.members.intersection(reading.members).count * 2 >= list.members.count
        }
    }
}

// MARK: - Places of items

/// One way to read a path as that of an item.
struct ItemPlace: Hashable, Sendable {
    /// The longest path in bytes, and the most segments, of which anything is learned.
    private static let length = 512
    private static let segments = 16

    /// The path of the collection, without a slash at its end.
    let collection: String
    /// The template of items.
    let item: String
    /// The id, decoded.
    let id: String

    /// Returns the ways to read a path, the likeliest first.
    static func all(of path: String) -> [ItemPlace] {
        let endsInSlash = path.count > 1 && path.hasSuffix("/")
        let whole = endsInSlash ? path.dropLast() : path[...]
        guard let slash = whole.lastIndex(of: "/") else { return [] }
        let (head, last) = (String(whole[..<slash]), whole[whole.index(after: slash)...])
        guard !last.isEmpty else { return [] }
        var places: [ItemPlace] = []
        if !head.isEmpty {
            places.append(ItemPlace(collection: head, item: "\(head)/{id}" + (endsInSlash ? "/" : ""), id: last.keyText(isKey: false)))
        }
        guard !endsInSlash else { return places }
        if !head.isEmpty, let name = last.withoutFormat {
            let (stem, suffix) = (name.keyText(isKey: false), last[name.endIndex...])
            places += [head + suffix, head].map { ItemPlace(collection: $0, item: "\(head)/{id}\(suffix)", id: stem) }
        }
        if last.hasSuffix(")"), let open = last.firstIndex(of: "("), open > last.startIndex {
            let key = last[last.index(after: open)...].dropLast().replacing("%27", with: "'")
            let variable = key.hasPrefix("'") ? "'{id}'" : "{id}"
            let collection = "\(head)/\(last[..<open])"
            places.append(ItemPlace(collection: collection, item: "\(collection)(\(variable))", id: key.keyText(isKey: true)))
        }
        return places.filter { !$0.id.isEmpty }
    }

    /// The template of the items of a collection of which no item was read, as paths usually are.
    static func usual(in collection: String) -> String {
        guard !collection.hasSuffix("/") else { return "\(collection){id}/" }
        let start = collection.lastIndex(of: "/") ?? collection.startIndex
        guard let name = collection[start...].withoutFormat else { return "\(collection)/{id}" }
        return "\(collection[..<name.endIndex])/{id}\(collection[name.endIndex...])"
    }

    /// True if `list` ends as the path above the item does, with more before its end: `/projects/4/tasks` of `/tasks/9`.
    func isShallow(in list: String) -> Bool {
        guard let slash = collection.lastIndex(of: "/"), list.hasPrefix(collection[..<slash] + "/"),
            list.hasSuffix(collection[slash...])
        else { return false }
        return list.pathSegmentCount >= collection.pathSegmentCount + 2
    }

    /// The path of which something is learned, in the spelling that all equivalent ones share; nil for one that is too long, or that could not
    /// be written as a template.
    static func plain(_ path: String) -> String? {
        guard path.utf8.count <= length, path.hasPrefix("/"), path != "/", !path.contains(where: { "{}*".contains($0) }) else { return nil }
        let plain = path.canonicalEscapes
        let parts = plain[...].pathSegments.withoutTrailingSlash
        guard parts.count <= segments, parts.allSatisfy({ !$0.isEmpty && $0 != "." && $0 != ".." }) else { return nil }
        return plain
    }
}

extension String {
    fileprivate var pathSegmentCount: Int { count { $0 == "/" } }

    /// A path without the slash at its end.
    var withoutSlash: String { count > 1 && hasSuffix("/") ? String(dropLast()) : self }
}

// MARK: - Lists

/// The places of a list's entries and of their ids, as JSON Pointers.
package struct ListShape: Hashable, Sendable {
    /// The array in the body.
    package var items: String
    /// The object within an entry.
    package var element: String
    /// The id within that object.
    package var id: String

    package init(items: String, element: String = "", id: String = "/id") { (self.items, self.element, self.id) = (items, element, id) }
}

/// A list that was read.
struct ReadList: Hashable, Sendable {
    /// The most ids that are kept of a list, and their length in bytes; a longer id is none.
    static let idLimit = 64
    static let idLength = 128
    /// The most members of an object that are looked at, and the length of their names in bytes.
    static let memberLimit = 64
    static let nameLength = 128
    /// The levels of objects in which a list is looked for.
    private static let depth = 2
    /// Members that only an entity has, not the object around a list.
    private static let ownIDs = ["id", "_id", "uuid", "guid"]

    let shape: ListShape
    /// The ids of its first entries.
    let ids: [String]
    /// The form of all ids; nil for an empty list.
    let form: IdentifierForm?
    /// The names that all entries have.
    let members: Set<String>
    /// The forms of the members that are URLs of their entries, where all entries agree.
    let links: [String: MadeMember]

    /// Finds the only list of a body; nil if there is none, or more than one.
    init?(in body: JSONValue, profile: Profile?) {
        let found: [ReadList]
        switch profile {
        case .jsonapi: found = [ReadList(body, at: ["data"])].compactMap(\.self)
        case .fhir: found = [ReadList(body, at: ["entry"], element: ["resource"])].compactMap(\.self)
        case .hal, .odata, .postgrest, nil:
            found = Self.arrays(in: body, at: []).compactMap { ReadList(body, at: $0) ?? Self.wrapped(in: body, at: $0) }
        }
        guard found.count == 1 else { return nil }
        self = found[0]
    }

    /// Reads the list at known places; nil if the body is none. An empty list is one.
    init?(_ body: JSONValue, as shape: ListShape) {
        guard let items = JSONPointer(shape.items), let element = JSONPointer(shape.element), let id = JSONPointer(shape.id),
            let entries = items.get(in: body)?.array
        else { return nil }
        var (distinct, members, form): (Set<String>, Set<String>?, IdentifierForm?) = ([], nil, nil)
        var ids: [String] = []
        var links: [String: String]?
        for entry in entries {
            guard let value = element.get(in: entry), let object = value.object, let text = id.get(in: value)?.entityID,
                distinct.insert(text).inserted
            else { return nil }
            if ids.count < Self.idLimit { ids.append(text) }
            form = form.map { $0.joined(with: IdentifierForm(text)) } ?? IdentifierForm(text)
            let names = Self.members(of: object)
            members = members.map { $0.intersection(names) } ?? names
            let own = (links.map { Array($0.keys) } ?? Array(names)).reduce(into: [String: String]()) { own, name in
                own[name] = object[name]?.string.flatMap { MadeMember.template(of: $0, id: text) }
            }
            links = links.map { $0.filter { own[$0.key] == $0.value } } ?? own
        }
        (self.shape, self.ids, self.form, self.members) = (shape, ids, form, members ?? [])
        self.links = links?.mapValues { MadeMember.link($0) } ?? [:]
    }

    private init?(_ body: JSONValue, at items: [String], element: [String] = []) {
        let (array, object) = (JSONPointer(tokens: items), JSONPointer(tokens: element))
        guard let first = array.get(in: body)?.array?.first.flatMap({ object.get(in: $0)?.object }) else { return nil }
        for name in CommonMembers.ids where first[name]?.entityID != nil {
            let shape = ListShape(items: array.text, element: object.text, id: JSONPointer(tokens: [name]).text)
            guard let list = ReadList(body, as: shape) else { continue }
            self = list
            return
        }
        return nil
    }

    /// A list whose entries are `{"note": {"id": 1}}`: the only member with an id in each. Nil where the entries have ids themselves.
    private static func wrapped(in body: JSONValue, at items: [String]) -> ReadList? {
        guard let first = JSONPointer(tokens: items).get(in: body)?.array?.first?.object, first.count <= memberLimit,
            !CommonMembers.ids.contains(where: { first[$0]?.entityID != nil })
        else { return nil }
        let found = first.compactMap { name, value in value.object.flatMap { _ in ReadList(body, at: items, element: [name]) } }
        return found.count == 1 ? found[0] : nil
    }

    /// The places of arrays that are not part of an entity.
    private static func arrays(in value: JSONValue, at place: [String]) -> [[String]] {
        if value.array != nil { return [place] }
        guard place.count < depth, let object = value.object, object.count <= memberLimit,
            !ownIDs.contains(where: { object[$0]?.entityID != nil })
        else { return [] }
        return object.flatMap { arrays(in: $0.value, at: place + [$0.name]) }
    }

    static func members(of object: JSONObject) -> Set<String> {
        Set(object.names.prefix(memberLimit).filter { $0.utf8.count <= nameLength })
    }
}

extension JSONValue {
    /// The text of a value that can be an entity's id: a string, or an integer.
    var entityID: String? {
        guard let text = string ?? integer.map({ String($0) }), !text.isEmpty, text.utf8.count <= ReadList.idLength else { return nil }
        return text
    }
}
