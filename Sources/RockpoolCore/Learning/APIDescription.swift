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

// MARK: storing

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
