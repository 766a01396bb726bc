// What an API's description of itself says of its collections, as evidence beside traffic (docs/outbox.md#descriptions).

/// The collections of an API whose items have paths of their own.
package struct APIDescription: Hashable, Sendable {
    /// The longest document in bytes that is read.
    package static let sizeLimit = Int.mib(4)
    /// The most collections, and the longest path in bytes.
    static let collectionLimit = 256
    static let length = 512

    /// One collection.
    struct Collection: Hashable, Sendable {
        /// The template of its path, as the document spells it below the API's base path.
        var path: String
        /// The template of its items, with all variables as in `path` and one more.
        var item: String
        /// The object within an item's body; nil where the document does not show it.
        var envelope: String?
        /// The id within that object; nil where the document does not show it.
        var id: String?
        /// The array in the list's body whose entries have that id; nil where the document does not show it.
        var items: String?
        /// The form of ids; nil where the document does not tell it.
        var ids: IdentifierForm?
        /// True if a POST makes an item.
        var creates: Bool
        /// Ids that are none, because the document has other paths there: `search` of `/notes/search`.
        var others: Set<String> = []

        /// The places in the list's body; nil where the document does not show them.
        var shape: ListShape? { items.flatMap { items in id.map { ListShape(items: items, id: $0) } } }

        /// True if a list of this shape is as the document says.
        func fits(_ list: ListShape) -> Bool { shape.map { $0 == list } ?? (id == nil || id == list.id) }
    }

    let collections: [Collection]

    /// Reads an OpenAPI document, or the metadata of an OData service; nil if it is none, or describes no collection.
    /// - Parameters:
    ///   - target: its own path, to which its paths are relative.
    ///   - document: reads the languages in which OpenAPI documents are written.
    package init?(_ bytes: [UInt8], target: String, document: ([UInt8]) -> JSONValue?) {
        if XMLReader.root(of: bytes) == ODataModel.root {
            self.init(metadata: bytes, target: target)
        } else {
            guard let document = document(bytes) else { return nil }
            self.init(document, target: target)
        }
    }

    /// Takes the first of these collections; nil without any.
    init?(_ collections: some Sequence<Collection>) {
        self.collections = Array(collections.prefix(Self.collectionLimit))
        if self.collections.isEmpty { return nil }
    }

    /// The paths of the collections that are not below an item.
    package var paths: [String] { collections.map(\.path).filter { !$0.contains("{") } }

    /// The collection at a path, with the template of its items in place of the variables that it shares with them.
    func collection(at path: String) -> Collection? {
        let segments = path[...].pathSegments.withoutTrailingSlash
        for collection in collections {
            let (template, item) = (PathTemplate(collection.path), PathTemplate(collection.item))
            guard let values = template.values(of: segments) else { continue }
            var found = collection
            found.path = path
            found.item = item.target(item.variables.map { name in template.variables.firstIndex(of: name).map { values[$0] } ?? "{id}" })
            return found
        }
        return nil
    }

    /// True if a path is that of the metadata of an OData service, which the protocol names (OData 4.01 part 2, §4.1).
    package static func isMetadata(_ path: String) -> Bool { path[...].pathSegments.last?.percentDecoded == "$metadata" }

    /// The URLs, at the same origin, of what an answer names as descriptions of its API (RFC 8631 §4.2).
    package static func links(in answer: ResponseHead, to request: RequestHead) -> [String] {
        LinkField.references("service-desc", in: answer.fields).filter { $0.utf8.count <= length }.compactMap {
            URIReference.resolve($0, origin: request.origin, target: request.target)
        }
    }
}

// MARK: - Storing

extension APIDescription {
    /// The form in which it is stored.
    var json: JSONValue {
        .array(
            collections.map { one in
                [
                    "path": .string(one.path), "item": .string(one.item), "envelope": .optional(one.envelope), "id": .optional(one.id),
                    "items": .optional(one.items), "ids": .optional(one.ids?.rawValue), "creates": .bool(one.creates),
                    "others": .array(one.others.sorted().map { .string($0) }),
                ]
            })
    }

    /// Reads the stored form; nil if it is none.
    init?(json: JSONValue) {
        self.init(
            (json.array ?? []).compactMap { one in
                guard let path = one["path"]?.string, let item = one["item"]?.string else { return nil }
                return Collection(
                    path: path, item: item, envelope: one["envelope"]?.string, id: one["id"]?.string, items: one["items"]?.string,
                    ids: one["ids"]?.string.flatMap(IdentifierForm.init(rawValue:)), creates: one["creates"]?.bool == true,
                    others: Set((one["others"]?.array ?? []).prefix(LearnedShape.othersLimit).compactMap(\.string)))
            })
    }
}

// MARK: - OpenAPI

// What an OpenAPI document says of an API's collections (docs/outbox.md#descriptions; OpenAPI 3.1 §4.8, Swagger 2).
extension APIDescription {
    /// Reads an OpenAPI document (3.x, or Swagger 2); nil if it is none, or describes no collection.
    /// - Parameter target: its own path, to which the paths of its servers are relative.
    init?(_ document: JSONValue, target: String) {
        guard let document = OpenAPIDocument(document, target: target) else { return nil }
        self.init(document.collections)
    }
}

/// The paths of a document, and the schemas of what they are answered with.
private struct OpenAPIDocument {
    /// The most paths that are looked at.
    private static let pathCount = 4096
    /// The most references that are followed to one schema.
    private static let depth = 8

    private let document: JSONValue
    private let paths: [Path]

    init?(_ document: JSONValue, target: String) {
        guard document["openapi"]?.string?.hasPrefix("3.") == true || document["swagger"]?.string == "2.0",
            let paths = document["paths"]?.object, let base = Self.basePath(of: document, target: target)
        else { return nil }
        self.document = document
        self.paths = paths.prefix(Self.pathCount).compactMap { name, value in Path(base + name, value) }
    }

    /// The path before all paths of the document; nil if it cannot be told.
    private static func basePath(of document: JSONValue, target: String) -> String? {
        guard document["swagger"] == nil else { return (document["basePath"]?.string ?? "").withoutLastSlash }
        guard let url = document["servers"]?.array?.first?["url"]?.string else { return "" }
        guard !url.contains("{") else { return nil }
        let origin = OriginAddress(scheme: .http, host: "")
        guard !url.contains("://") else {
            let path = url[(url.firstRange(of: "://")?.upperBound ?? url.startIndex)...].drop { $0 != "/" }
            return String(path).withoutLastSlash
        }
        return URIReference.resolve(url, origin: origin, target: target).map { String($0.dropFirst(origin.url.count)).withoutLastSlash }
    }

    /// The lists with a path of their items.
    var collections: some Sequence<APIDescription.Collection> {
        // By the paths of the lists that each may be an item of.
        var items: [String: Path] = [:]
        for item in paths where item.isItem {
            for place in item.places(of: "7") where items[place.collection] == nil { items[place.collection] = item }
        }
        var others: [String: Set<String>] = [:]
        for path in paths {
            for place in path.places(of: nil) where items[place.collection] != nil && !place.id.contains("{") {
                guard others[place.collection, default: []].count < LearnedShape.othersLimit else { continue }
                others[place.collection, default: []].insert(place.id)
            }
        }
        return paths.lazy.filter(\.isRead).compactMap { [items, others] list in
            items[list.name].map { collection(list, $0, others: others[list.name] ?? []) }
        }
    }

    private func collection(_ list: Path, _ item: Path, others: Set<String>) -> APIDescription.Collection {
        var found = APIDescription.Collection(path: list.text, item: item.text, creates: list.creates, others: others)
        let names = Array(item.template.variables.suffix(1)) + CommonMembers.ids
        guard let entity = item.read.flatMap(schema).flatMap({ entity(in: $0, names: names) }) else { return found }
        (found.envelope, found.id) = (JSONPointer(tokens: entity.place).text, JSONPointer(tokens: [entity.found]).text)
        guard let entries = list.read.flatMap(schema).flatMap({ entries(in: $0, id: entity.found) }) else { return found }
        (found.items, found.ids) = (JSONPointer(tokens: entries.place).text, IdentifierForm(schema: entries.found))
        return found
    }

    // MARK: - Schemas

    /// The schema of the answer 200 to an operation.
    private func schema(of operation: JSONValue) -> JSONValue? {
        guard let answer = operation["responses"]?["200"].flatMap(resolved) else { return nil }
        let contents = answer["content"]?.object
        let content = contents?.first { $0.name.hasPrefix("application/json") || $0.name.contains("+json") }?.value
        return (answer["schema"] ?? content?["schema"]).flatMap(resolved)
    }

    /// Where a schema has the id: in itself, or in the only member that has one; and its name, the first of `names`.
    private func entity(in schema: JSONValue, names: [String]) -> (place: [String], found: String)? {
        only(in: schema) { schema in names.first { schema["properties"]?[$0] != nil } }
    }

    /// Where the schema of a list has the array whose entries have this id: the whole, or one member; and the schema of the id.
    private func entries(in schema: JSONValue, id: String) -> (place: [String], found: JSONValue)? {
        only(in: schema) { $0["items"].flatMap(resolved)?["properties"]?[id].flatMap(resolved) }
    }

    /// What is found of a schema, else of the only one of its members of which something is found.
    private func only<Found>(in schema: JSONValue, _ find: (JSONValue) -> Found?) -> (place: [String], found: Found)? {
        if let found = find(schema) { return ([], found) }
        guard let members = schema["properties"]?.object else { return nil }
        let found = members.prefix(ReadList.memberLimit).compactMap { name, value in
            resolved(value).flatMap(find).map { (place: [name], found: $0) }
        }
        return found.count == 1 ? found.first : nil
    }

    /// What a reference within the document names; nil for one that leads elsewhere, or to another one too often.
    private func resolved(_ value: JSONValue) -> JSONValue? {
        var value = value
        for _ in 0..<Self.depth {
            guard let reference = value["$ref"]?.string else { return value }
            guard reference.hasPrefix("#"), let next = JSONPointer(String(reference.dropFirst()))?.get(in: document) else { return nil }
            value = next
        }
        return nil
    }

    // MARK: - One path

    /// A path of the document.
    private struct Path {
        let text: String
        let template: PathTemplate
        /// The operation GET.
        let read: JSONValue?
        /// True if there are requests that only an item has, or a read.
        let isItem: Bool
        let creates: Bool

        init?(_ text: String, _ value: JSONValue) {
            guard text.hasPrefix("/"), text.utf8.count <= APIDescription.length, !text.contains("?"), !text.contains("*") else {
                return nil
            }
            self.text = text
            template = PathTemplate(text)
            guard Set(template.variables).count == template.variables.count else { return nil }
            read = value["get"]
            // An operation that is answered as one that makes something.
            creates = value["post"]?["responses"]?["201"] != nil
            isItem = !template.variables.isEmpty && ["get", "put", "patch", "delete"].contains { value[$0] != nil }
        }

        var isRead: Bool { read != nil }

        /// The name under which its items find it: its path without a slash at its end.
        var name: String { path(last: nil).withoutSlash }

        /// The ways to read it as the path of an item, with this id in place of the last variable; nil for those of the path as it is.
        func places(of id: String?) -> [ItemPlace] { ItemPlace.all(of: path(last: id)).filter { id == nil || $0.id == id } }

        private func path(last id: String?) -> String {
            let names = template.variables.map { "{\($0)}" }
            return template.target(id.map { names.dropLast() + [$0] } ?? names)
        }
    }
}

extension IdentifierForm {
    /// The form of ids that a schema tells; nil for any other type.
    fileprivate init?(schema: JSONValue) {
        switch (schema["type"]?.string, schema["format"]?.string) {
        case ("integer", _): self = .number
        case ("string", "uuid"): self = .uuid
        case ("string", _): self = .text
        default: return nil
        }
    }
}

extension String {
    fileprivate var withoutLastSlash: String { hasSuffix("/") ? String(dropLast()) : self }
}

// MARK: - OData

// What the metadata of an OData service says of its entity sets (docs/outbox.md#descriptions; OData CSDL XML 4.01 §6 and §13, CSDL 3 §5 and §14).
extension APIDescription {
    /// Reads the metadata of a service of OData 4 or 3; nil if it is none, or describes no collection.
    /// - Parameter target: its own path, beside which entity sets have theirs.
    init?(metadata: [UInt8], target: String) {
        guard let model = ODataModel(metadata) else { return nil }
        let base = target.prefix { $0 != "?" && $0 != "#" }.pathSegments.dropLast().map { "/" + $0 }.joined()
        self.init(model.sets.lazy.compactMap { model.collection($0, base: base) })
    }
}

/// The entity types and sets of a document.
struct ODataModel {
    /// The name of the root of a document.
    static let root = "Edmx"
    /// The most types of which one is derived.
    private static let depth = 16

    /// A type of entities, by what it adds to its base.
    private struct EntityType {
        var base: String?
        var keys: [String] = []
        var properties: [String: String] = [:]
    }

    /// A set of entities, and their type.
    struct EntitySet {
        let name: String
        let type: String
    }

    private(set) var sets: [EntitySet] = []
    /// By their qualified names.
    private var types: [String: EntityType] = [:]
    /// By their aliases.
    private var namespaces: [String: String] = [:]
    /// Sets that take no new entities.
    private var closed: Set<String> = []
    private var isVersion3 = false

    // What is being read.
    private var namespace = ""
    private var type = ""
    private var target = ""
    private var isDefaultContainer = true

    /// Nil if the document is none, or is not well-formed to its end.
    init?(_ bytes: [UInt8]) {
        do { try XMLReader.read(bytes) { note($0) } } catch { return nil }
    }

    /// Takes a tag; false if the document is none of a known version.
    private mutating func note(_ tag: XMLReader.Tag) -> Bool {
        guard tag.isStart else { return true }
        let parent = tag.path.dropLast().last
        switch (tag.name, parent) {
        case (Self.root, nil):
            isVersion3 = tag["Version"] == "1.0"
            return isVersion3 || tag["Version"]?.hasPrefix("4.") == true
        case ("Schema", _):
            namespace = tag["Namespace"] ?? ""
            if let alias = tag["Alias"] { namespaces[alias] = namespace }
        case ("EntityType", "Schema"):
            type = "\(namespace).\(tag["Name"] ?? "")"
            types[type] = EntityType(base: tag["BaseType"])
        case ("PropertyRef", "Key"): types[type]?.keys.append(tag["Name"] ?? "")
        case ("Property", "EntityType"): if let name = tag["Name"] { types[type]?.properties[name] = tag["Type"] }
        case ("EntityContainer", _): isDefaultContainer = tag["IsDefaultEntityContainer"] != "false"
        case ("EntitySet", "EntityContainer"):
            target = tag["Name"] ?? ""
            if isDefaultContainer, let type = tag["EntityType"] { sets.append(EntitySet(name: target, type: type)) }
        case ("Annotations", _): target = tag["Target"]?.split(separator: "/").last.map { String($0) } ?? ""
        case ("PropertyValue", _): if tag["Property"] == "Insertable", tag["Bool"] == "false" { closed.insert(target) }
        default: break
        }
        return parent != nil
    }

    /// The collection of a set whose entities have one key of a type that paths spell as bodies do.
    func collection(_ set: EntitySet, base: String) -> APIDescription.Collection? {
        guard !set.name.isEmpty, set.name.utf8.allSatisfy({ $0.isAlphanumeric || $0 == UInt8(ascii: "_") }), let key = key(of: set.type),
            let ids = form(of: key.type), ItemPlace.plain(base + "/" + set.name) != nil
        else { return nil }
        let (path, id) = (base + "/" + set.name, ids == .text ? "'{id}'" : "{id}")
        return APIDescription.Collection(
            path: path, item: "\(path)(\(id))", envelope: "", id: JSONPointer(tokens: [key.name]).text, items: "/value", ids: ids,
            creates: !closed.contains(set.name))
    }

    /// The only key of a type, which it may have of its base.
    private func key(of type: String) -> (name: String, type: String)? {
        var (next, keys): (String?, [String]) = (type, [])
        for _ in 0..<Self.depth {
            guard let found = next.flatMap(entityType) else { return nil }
            if keys.isEmpty { keys = found.keys }
            if keys.count > 1 { return nil }
            if let name = keys.first, let type = found.properties[name] { return (name, type) }
            next = found.base
        }
        return nil
    }

    /// The type of a name, which may be qualified by the alias of its namespace.
    private func entityType(_ name: String) -> EntityType? {
        if let found = types[name] { return found }
        guard let dot = name.lastIndex(of: "."), let namespace = namespaces[String(name[..<dot])] else { return nil }
        return types[namespace + name[dot...]]
    }

    /// The form of keys of a type; nil for those that have marks in paths, as GUIDs and long numbers have before version 4.
    private func form(of type: String) -> IdentifierForm? {
        switch type {
        case "Edm.Byte", "Edm.SByte", "Edm.Int16", "Edm.Int32": .number
        case "Edm.Int64": isVersion3 ? nil : .number
        case "Edm.Guid": isVersion3 ? nil : .uuid
        case "Edm.String": .text
        default: nil
        }
    }
}

extension XMLReader.Tag {
    /// The value of an attribute of this name, in any namespace.
    fileprivate subscript(name: String) -> String? {
        attributes.first { $0.name == name || $0.name.hasSuffix(":" + name) }?.value
    }
}
