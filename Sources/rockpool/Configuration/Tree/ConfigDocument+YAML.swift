// A tree as YAML, with quotes wherever a text could be parsed as another type.
import Yams

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
