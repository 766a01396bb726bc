// Composes YAML with its aliases resolved, in memory and time bounded by the text (YAML 1.1 §3.2.2.2).
import Yams

/// YAML of unknown origin. Ten aliases of aliases may stand for a thousand million nodes; such a document is refused.
enum BoundedYAML {
    /// The most nodes that a document has, above the bytes of its text, of which each is one node at most.
    private static let extraNodes = 100_000
    /// The most mappings and sequences within each other, which is libyaml's own limit for a text.
    fileprivate static let depth = 1000

    /// An alias that cannot be resolved, at a line of the text.
    struct Refusal: Error {
        let problem: String
        let line: Int
    }

    /// The root of the only document; nil if there is none. Throws `YamlError` or `Refusal`.
    static func compose(_ yaml: String) throws -> Node? {
        guard yaml.utf8.contains(UInt8(ascii: "*")), yaml.utf8.contains(UInt8(ascii: "&")) else { return try Yams.compose(yaml: yaml) }
        let present = Set(yaml.unicodeScalars.lazy.filter { (0xE000...0xF8FF).contains($0.value) })
        guard let mark = (0xE000...0xF8FF).lazy.compactMap(Unicode.Scalar.init).first(where: { !present.contains($0) }) else {
            throw Refusal(problem: "it has every private-use character", line: 1)
        }
        // Yams would share the nodes of an alias, and walk them anew for each key that contains it.
        let parser = try Parser(yaml: withoutAliases(yaml, mark: mark))
        var expansion = AliasExpansion(mark: mark, room: yaml.utf8.count + extraNodes)
        // Nodes do not keep their anchors, the parser does.
        return try withExtendedLifetime(parser) { try parser.singleRoot().map { try expansion.expand($0, at: 1).node } }
    }

    /// The text with `mark` in place of each asterisk that may begin an alias, which makes a plain scalar of it.
    private static func withoutAliases(_ yaml: String, mark: Unicode.Scalar) -> String {
        let mark = Array(String(mark).utf8)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(yaml.utf8.count + yaml.utf8.count / 8)
        var rest = yaml.utf8[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "*"), rest.first.map(AliasExpansion.isInName) == true { bytes += mark } else { bytes.append(byte) }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// Puts the nodes of anchors in the places of their aliases.
private struct AliasExpansion {
    /// A node with its aliases resolved, the number of nodes in it, and the levels of them.
    struct Expanded {
        var node: Node
        var size = 1
        var height = 1

        /// Counts a node within it.
        mutating func add(_ inner: Expanded) { (size, height) = (size + inner.size, max(height, 1 + inner.height)) }
    }

    /// The scalar that stands for the asterisk of an alias.
    let mark: Unicode.Scalar
    /// The nodes that may still be made.
    var room: Int
    private var known: [String: Expanded] = [:]

    init(mark: Unicode.Scalar, room: Int) { (self.mark, self.room) = (mark, room) }

    mutating func expand(_ node: Node, at depth: Int) throws -> Expanded {
        var made = Expanded(node: node)
        switch node {
        case .scalar(var scalar):
            if let name = alias(scalar) { return try resolve(name, at: depth, line: scalar.mark?.line ?? 1) }
            if scalar.string.unicodeScalars.contains(mark) {
                scalar.string = scalar.string.replacing(String(mark), with: "*")
                made.node = .scalar(scalar)
            }
        case .sequence(let sequence):
            let items = try sequence.map { try expand($0, at: depth + 1) }
            made.node = .sequence(.init(items.map(\.node), sequence.tag, sequence.style, sequence.mark))
            for item in items { made.add(item) }
        case .mapping(let mapping):
            let pairs = try mapping.map { (try expand($0.key, at: depth + 1), try expand($0.value, at: depth + 1)) }
            made.node = .mapping(.init(pairs.map { ($0.node, $1.node) }, mapping.tag, mapping.style, mapping.mark))
            for (key, value) in pairs {
                made.add(key)
                made.add(value)
            }
        case .alias: break
        }
        if let anchor = node.anchor { known[anchor.rawValue] = made }
        return made
    }

    private mutating func resolve(_ name: String, at depth: Int, line: Int) throws -> Expanded {
        guard let found = known[name] else { throw BoundedYAML.Refusal(problem: "found undefined alias", line: line) }
        room -= found.size
        guard room >= 0, depth + found.height <= BoundedYAML.depth else {
            throw BoundedYAML.Refusal(problem: "its aliases stand for too much", line: line)
        }
        return found
    }

    /// The name of the alias that a scalar stands for; nil for a text.
    private func alias(_ scalar: Node.Scalar) -> String? {
        guard scalar.style == .plain, scalar.string.unicodeScalars.first == mark else { return nil }
        let name = scalar.string.unicodeScalars.dropFirst()
        return !name.isEmpty && String(name).utf8.allSatisfy(Self.isInName) ? String(name) : nil
    }

    /// True for the bytes of a name of libyaml.
    static func isInName(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "_"), UInt8(ascii: "-"):
            true
        default: false
        }
    }
}
