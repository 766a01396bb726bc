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
