// A tree as indented JSON (RFC 8259), with the members in their order.

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
