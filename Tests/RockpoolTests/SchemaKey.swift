// The keys of the configuration in its JSON Schema, and their values in the notation of the page (docs/reference/configuration.md).

@testable import rockpool

/// One key of the configuration in the JSON Schema. `[]` stands for an item of a list, `NAME` for a freely chosen name.
struct SchemaKey {
    var path: String
    var isRequired: Bool
    /// The words of an enumeration; empty for other types.
    var words: [String]

    static func all(in schema: ConfigDocument, at path: String = "", isRequired: Bool = false) -> [SchemaKey] {
        if let items = schema.choice(with: "items")?["items"], items["properties"] != nil { return all(in: items, at: path + "[]") }
        if let object = schema.choice(with: "properties"), case .map(let members)? = object["properties"] {
            return members.flatMap { member in
                let inner = path.isEmpty ? member.name : "\(path).\(member.name)"
                return all(in: member.value, at: inner, isRequired: object["required"]?.texts.contains(member.name) == true)
            }
        }
        if let named = schema["additionalProperties"], named["properties"] != nil { return all(in: named, at: path + ".NAME") }
        return [SchemaKey(path: path, isRequired: isRequired, words: schema.choice(with: "enum")?["enum"]?.texts ?? [])]
    }

    /// Returns every scalar and every list of scalars with its value in the notation of the page.
    static func values(of tree: ConfigDocument, at path: String = "") -> [String: String] {
        switch tree {
        case .map(let members) where !members.isEmpty:
            return members.reduce(into: [:]) { values, member in
                let inner = path.isEmpty ? member.name : "\(path).\(member.name)"
                values.merge(Self.values(of: member.value, at: inner)) { first, _ in first }
            }
        case .list(let items):
            guard let item = items.first, case .map = item else { return [path: tree.written] }
            return values(of: item, at: path + "[]")
        default: return [path: tree.written]
        }
    }
}

extension ConfigDocument {
    /// Returns this schema, or the alternative of it that has the member.
    fileprivate func choice(with name: String) -> ConfigDocument? {
        if self[name] != nil { return self }
        guard case .list(let choices)? = self["anyOf"] else { return nil }
        return choices.first { $0[name] != nil }
    }

    fileprivate var texts: [String] {
        guard case .list(let items) = self else { return [] }
        return items.map(\.written)
    }

    fileprivate var written: String {
        switch self {
        case .null: "null"
        case .bool(let value): "\(value)"
        case .int(let value): "\(value)"
        case .text(let text): text.isEmpty ? "\"\"" : text
        case .list(let items): "[" + items.map(\.written).joined(separator: ", ") + "]"
        case .map: "{}"
        }
    }
}
