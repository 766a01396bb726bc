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
    /// The most paths that are looked at, and the most references that are followed to one schema.
    private static let pathLimit = 4096
    private static let depth = 8

    private let document: JSONValue
    private let paths: [Path]

    init?(_ document: JSONValue, target: String) {
        guard document["openapi"]?.string?.hasPrefix("3.") == true || document["swagger"]?.string == "2.0",
            let paths = document["paths"]?.object, let base = Self.basePath(of: document, target: target)
        else { return nil }
        self.document = document
        self.paths = paths.prefix(Self.pathLimit).compactMap { name, value in Path(base + name, value) }
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

    // MARK: schemas

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

    // MARK: one path

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
