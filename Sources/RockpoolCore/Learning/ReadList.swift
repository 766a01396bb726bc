// The list in a body, as learning reads it: an array of objects with ids (docs/outbox.md#learning).

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
