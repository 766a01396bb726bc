// A tree as YAML, quoted wherever a reader could take a text for something else.
import Yams

extension Tree {
    /// YAML in block style, a line break at its end.
    func yaml() throws -> String {
        try Yams.serialize(node: node, width: -1, allowUnicode: true)
    }

    private var node: Node {
        switch self {
        case .null: Node("null", Tag(.null), .plain)
        case .bool(let value): Node(value ? "true" : "false", Tag(.bool), .plain)
        case .int(let value): Node(String(value), Tag(.int), .plain)
        case .text(let text): Node(text, Tag(.str), Self.style(of: text))
        case .list(let items):
            .sequence(Node.Sequence(items.map(\.node), Tag(.seq), items.allSatisfy(\.isScalar) ? .flow : .block))
        case .map(let members):
            .mapping(Node.Mapping(members.map { (Node($0.name), $0.value.node) }, Tag(.map), members.isEmpty ? .flow : .block))
        }
    }

    private var isScalar: Bool {
        switch self {
        case .null, .bool, .int, .text: true
        case .list, .map: false
        }
    }

    private static func style(of text: String) -> Node.Scalar.Style {
        Resolver.default.resolveTag(of: Node(text)) == .str ? .any : .doubleQuoted
    }
}
