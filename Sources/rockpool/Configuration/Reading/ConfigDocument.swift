// A configuration as an ordered document, for `config show` and the JSON Schema.
import Yams

/// An ordered document, printed as YAML or JSON.
indirect enum ConfigDocument: Hashable, Sendable {
    case null
    case bool(Bool)
    case int(Int)
    case text(String)
    case list([ConfigDocument])
    case map([Member])

    struct Member: Hashable, Sendable {
        var name: String
        var value: ConfigDocument

        init(_ name: String, _ value: ConfigDocument) {
            self.name = name
            self.value = value
        }
    }

    /// The member of that name, if this is a map with it.
    subscript(name: String) -> ConfigDocument? {
        guard case .map(let members) = self else { return nil }
        return members.first { $0.name == name }?.value
    }
}

/// A tree as indented JSON (RFC 8259), with the members in their order.
extension ConfigDocument {
    /// JSON with two spaces per level, without a line break at its end.
    func json(indent: Int = 0) -> String {
        let inner = String(repeating: "  ", count: indent + 1)
        let outer = String(repeating: "  ", count: indent)
        switch self {
        case .null: return "null"
        case .bool(let value): return value ? "true" : "false"
        case .int(let value): return String(value)
        case .text(let text): return Self.quoted(text)
        case .list(let items):
            if items.isEmpty { return "[]" }
            return "[\n" + items.map { inner + $0.json(indent: indent + 1) }.joined(separator: ",\n") + "\n\(outer)]"
        case .map(let members):
            if members.isEmpty { return "{}" }
            let lines = members.map { "\(inner)\(Self.quoted($0.name)): \($0.value.json(indent: indent + 1))" }
            return "{\n" + lines.joined(separator: ",\n") + "\n\(outer)}"
        }
    }

    /// A string that JSON and YAML read in the same way: nothing in it ends a line in either, and every character is one that is seen.
    private static func quoted(_ text: String) -> String {
        var out = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": out += "\\\""
            case "\\": out += "\\\\"
            case "\n": out += "\\n"
            case "\r": out += "\\r"
            case "\t": out += "\\t"
            case _ where scalar.value <= 0xFFFF && scalar.isUnseen:
                let digits = String(scalar.value, radix: 16)
                out += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: out.unicodeScalars.append(scalar)
            }
        }
        return out + "\""
    }
}

extension Unicode.Scalar {
    /// True for controls, separators of lines and characters of format, such as those that turn the direction of writing.
    fileprivate var isUnseen: Bool {
        switch properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator, .format: true
        default: false
        }
    }
}

/// A tree as YAML, with quotes wherever a text could be parsed as another type.
extension ConfigDocument {
    /// YAML in block style, with a line break at its end.
    ///
    /// - Parameter note: returns the comment after the value of a key; nil for none.
    func yaml(note: (KeyPathName) -> String? = { _ in nil }) throws -> String {
        var lines: [String] = []
        try write(to: &lines, indent: 0, at: .root, note: note)
        return lines.map { $0 + "\n" }.joined()
    }

    private func write(to lines: inout [String], indent: Int, at path: KeyPathName, note: (KeyPathName) -> String?) throws {
        let margin = String(repeating: " ", count: indent)
        switch self {
        case .map(let members) where !members.isEmpty:
            for member in members {
                let (name, path) = (try ConfigDocument.text(member.name).inline(), path.key(member.name))
                if member.value.isInline {
                    lines.append("\(margin)\(name): \(try member.value.inline())" + (note(path).map { "  # \($0)" } ?? ""))
                } else {
                    lines.append("\(margin)\(name):")
                    try member.value.write(to: &lines, indent: indent + 2, at: path, note: note)
                }
            }
        case .list(let items) where !isInline:
            for (index, item) in items.enumerated() {
                let first = lines.count
                try item.write(to: &lines, indent: indent + 2, at: path.item(index), note: note)
                lines[first] = "\(margin)- " + lines[first].dropFirst(indent + 2)
            }
        default: lines.append(margin + (try inline()))
        }
    }

    /// True if the tree fits one line: a scalar, a list of scalars, or an empty mapping.
    private var isInline: Bool {
        switch self {
        case .null, .bool, .int, .text: true
        case .list(let items): items.allSatisfy(\.isScalar)
        case .map(let members): members.isEmpty
        }
    }

    private var isScalar: Bool {
        switch self {
        case .null, .bool, .int, .text: true
        case .list, .map: false
        }
    }

    /// The tree as one line, without a line break.
    private func inline() throws -> String {
        let text = try Yams.serialize(node: node, width: -1, allowUnicode: true)
        // Yams ends a document that is a bare scalar with "..." on a second line.
        return String(text.split(separator: "\n", maxSplits: 1, omittingEmptySubsequences: false)[0])
    }

    private var node: Node {
        switch self {
        case .null: Node("null", Tag(.null), .plain)
        case .bool(let value): Node(value ? "true" : "false", Tag(.bool), .plain)
        case .int(let value): Node(String(value), Tag(.int), .plain)
        case .text(let text): Node(text, Tag(.str), Self.style(of: text))
        case .list(let items): .sequence(Node.Sequence(items.map(\.node), Tag(.seq), .flow))
        case .map(let members):
            .mapping(Node.Mapping(members.map { (ConfigDocument.text($0.name).node, $0.value.node) }, Tag(.map), .flow))
        }
    }

    private static func style(of text: String) -> Node.Scalar.Style {
        text.contains(where: \.isNewline) || Resolver.default.resolveTag(of: Node(text)) != .str ? .doubleQuoted : .any
    }
}

/// The parts of JSON Schema (draft 2020-12) used to describe the configuration.
extension ConfigDocument {
    static func schema(_ type: String, description: String? = nil) -> ConfigDocument {
        .map([Member("type", .text(type))] + (description.map { [Member("description", .text($0))] } ?? []))
    }

    static func schema(words: [String]) -> ConfigDocument { .map([Member("enum", .list(words.map(ConfigDocument.text)))]) }

    /// An object with arbitrary member names.
    static func schema(membersOf value: ConfigDocument) -> ConfigDocument { schema("object").adding("additionalProperties", value: value) }

    /// The value, or null.
    var orNull: ConfigDocument { .map([Member("anyOf", .list([self, .schema("null")]))]) }

    /// The value, another one, or null.
    func orNull(or other: ConfigDocument) -> ConfigDocument { .map([Member("anyOf", .list([self, other, .schema("null")]))]) }

    /// A list of the value, a single one, or null.
    var orList: ConfigDocument { orList(or: nil) }

    /// A list of the value, a single one, another value, or null.
    func orList(or other: ConfigDocument?) -> ConfigDocument {
        let list: ConfigDocument = .schema("array").adding("items", value: self)
        let choices: [ConfigDocument] = [list, self] + (other.map { [$0] } ?? []) + [.schema("null")]
        return .map([Member("anyOf", .list(choices))])
    }

    func adding(_ name: String, value: ConfigDocument) -> ConfigDocument {
        guard case .map(let members) = self else { return self }
        return .map(members + [Member(name, value)])
    }
}
