// What an OpenAPI document says of an API's collections, as evidence beside traffic (docs/outbox.md#descriptions; OpenAPI 3.1 §4.8, Swagger 2).

/// The collections of an API whose items have paths of their own.
package struct APIDescription: Hashable, Sendable {
    /// The longest document in bytes that is read.
    package static let sizeLimit = Int.mib(4)
    /// The most collections, the most paths that are looked at, and the longest path in bytes.
    static let collectionLimit = 256
    private static let pathLimit = 4096
    private static let length = 512
    /// The most references that are followed to one schema.
    private static let depth = 8

    /// One collection.
    struct Collection: Hashable, Sendable {
        /// The template of its path, as the document spells it below the API's base path.
        var path: String
        /// The template of its items, with all variables as in `path` and one more.
        var item: String
        /// The object within an item's body; nil where the document does not show it.
        var envelope: String?
        /// True if a POST makes an item.
        var creates: Bool
    }

    let collections: [Collection]

    /// Reads a document; nil if it is none, or describes no collection.
    /// - Parameter target: its own path, to which the paths of its servers are relative.
    package init?(_ document: JSONValue, target: String) {
        guard document["openapi"]?.string?.hasPrefix("3.") == true || document["swagger"]?.string == "2.0",
            let paths = document["paths"]?.object, let base = Self.basePath(of: document, target: target)
        else { return nil }
        let described = paths.prefix(Self.pathLimit).compactMap { name, value in Path(base + name, value, in: document) }
        let items = described.filter(\.isItem)
        let collections = described.filter(\.isRead).compactMap { path in
            items.first { Self.isItem($0.template, of: path.template) }.map { item in
                Collection(path: path.text, item: item.text, envelope: item.envelope, creates: path.creates)
            }
        }
        guard !collections.isEmpty else { return nil }
        self.collections = Array(collections.prefix(Self.collectionLimit))
    }

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

    /// True if paths of one template name items of the lists of another, in one of the ways in which items are read.
    private static func isItem(_ item: PathTemplate, of list: PathTemplate) -> Bool {
        let own = item.variables.filter { !list.variables.contains($0) }
        guard own.count == 1, item.variables.count == list.variables.count + 1 else { return false }
        let path = item.target(item.variables.map { $0 == own[0] ? "7" : "1" })
        let collection = list.target(list.variables.map { _ in "1" }).withoutSlash
        return ItemPlace.all(of: path).contains { $0.collection == collection && $0.id == "7" }
    }

    /// The URLs, at the same origin, of what an answer names as descriptions of its API (RFC 8631 §4.2).
    package static func links(in answer: ResponseHead, to request: RequestHead) -> [String] {
        LinkField.references("service-desc", in: answer.fields).filter { $0.utf8.count <= length }.compactMap {
            URIReference.resolve($0, origin: request.origin, target: request.target)
        }
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

    // MARK: one path

    /// A path of the document.
    private struct Path {
        let text: String
        let template: PathTemplate
        let isRead: Bool
        /// True if there are requests that only an item has, or a read.
        let isItem: Bool
        let creates: Bool
        let envelope: String?

        init?(_ text: String, _ value: JSONValue, in document: JSONValue) {
            guard text.hasPrefix("/"), text.utf8.count <= length, !text.contains("?"), !text.contains("*") else { return nil }
            self.text = text
            template = PathTemplate(text)
            (isRead, creates) = (value["get"] != nil, value["post"].map(Self.makes) ?? false)
            isItem = !template.variables.isEmpty && ["get", "put", "patch", "delete"].contains { value[$0] != nil }
            envelope = value["get"].flatMap { Self.schema(of: $0, in: document) }.flatMap { Self.envelope(of: $0, in: document) }
        }

        /// True if an operation is answered as one that makes something.
        private static func makes(_ operation: JSONValue) -> Bool { operation["responses"]?["201"] != nil }

        /// The schema of the answer 200.
        private static func schema(of operation: JSONValue, in document: JSONValue) -> JSONValue? {
            guard let answer = operation["responses"]?["200"].flatMap({ resolved($0, in: document) }) else { return nil }
            let contents = answer["content"]?.object
            let content = contents?.first { $0.name.hasPrefix("application/json") || $0.name.contains("+json") }?.value
            return (answer["schema"] ?? content?["schema"]).flatMap { resolved($0, in: document) }
        }

        /// Where the schema has the id: in itself, or in the only member that has one.
        private static func envelope(of schema: JSONValue, in document: JSONValue) -> String? {
            if hasID(schema) { return "" }
            guard let members = schema["properties"]?.object else { return nil }
            let found = members.prefix(ReadList.memberLimit).filter { _, value in resolved(value, in: document).map(hasID) == true }
            return found.count == 1 ? found.first.map { JSONPointer(tokens: [$0.name]).text } : nil
        }

        private static func hasID(_ schema: JSONValue) -> Bool {
            CommonMembers.ids.contains { schema["properties"]?[$0] != nil }
        }

        /// What a reference within the document names; nil for one that leads elsewhere, or to another one too often.
        private static func resolved(_ value: JSONValue, in document: JSONValue) -> JSONValue? {
            var value = value
            for _ in 0..<depth {
                guard let reference = value["$ref"]?.string else { return value }
                guard reference.hasPrefix("#"), let next = JSONPointer(String(reference.dropFirst()))?.get(in: document) else { return nil }
                value = next
            }
            return nil
        }
    }
}

// MARK: storing

extension APIDescription {
    /// The form in which it is stored.
    var json: JSONValue {
        .array(
            collections.map { one in
                [
                    "path": .string(one.path), "item": .string(one.item), "envelope": .optional(one.envelope),
                    "creates": .bool(one.creates),
                ]
            })
    }

    /// Reads the stored form; nil if it is none.
    init?(json: JSONValue) {
        collections = (json.array ?? []).prefix(Self.collectionLimit).compactMap { one in
            guard let path = one["path"]?.string, let item = one["item"]?.string else { return nil }
            return Collection(path: path, item: item, envelope: one["envelope"]?.string, creates: one["creates"]?.bool == true)
        }
        if collections.isEmpty { return nil }
    }
}

extension String {
    fileprivate var withoutLastSlash: String { hasSuffix("/") ? String(dropLast()) : self }
}
