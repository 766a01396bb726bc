// Documents of JSON with places for values (docs/outbox.md#batch-push).

/// A JSON value in whose strings `{name}` stands for a value.
package struct JSONTemplate: Hashable, Sendable {
    private let value: JSONValue

    /// Nil unless the text is JSON.
    package init?(_ text: String) {
        guard let value = try? JSONValue.parse(Array(text.utf8)) else { return nil }
        self.value = value
    }

    /// The names in it.
    package var names: Set<String> { Self.names(in: value) }

    /// Returns the document. A string that is one name becomes its value, of any type; a member or an element whose value is missing is left out.
    package func filled(with values: [String: JSONValue]) -> JSONValue { Self.filled(value, with: values) ?? .null }

    private static func filled(_ value: JSONValue, with values: [String: JSONValue]) -> JSONValue? {
        switch value {
        case .object(let members):
            return .object(JSONObject(members.compactMap { name, value in filled(value, with: values).map { (name, $0) } }))
        case .array(let elements): return .array(elements.compactMap { filled($0, with: values) })
        case .string(let text):
            let pieces = pieces(of: text)
            if pieces.count == 1, pieces[0].isName { return values[String(pieces[0].text)] }
            let texts = pieces.map { piece in
                guard piece.isName else { return String(piece.text) }
                return values[String(piece.text)].map { $0.string ?? String(decoding: $0.serialized(), as: UTF8.self) } ?? ""
            }
            return .string(texts.joined())
        case .null, .bool, .number: return value
        }
    }

    private static func names(in value: JSONValue) -> Set<String> {
        switch value {
        case .object(let members): members.reduce(into: []) { $0.formUnion(names(in: $1.value)) }
        case .array(let elements): elements.reduce(into: []) { $0.formUnion(names(in: $1)) }
        case .string(let text): Set(pieces(of: text).filter(\.isName).map { String($0.text) })
        case .null, .bool, .number: []
        }
    }

    /// The texts and the names of a string, in their order.
    private static func pieces(of text: String) -> [(text: Substring, isName: Bool)] {
        var pieces: [(text: Substring, isName: Bool)] = []
        var rest = text[...]
        while let open = rest.firstIndex(of: "{"), let close = rest[open...].firstIndex(of: "}") {
            if open > rest.startIndex { pieces.append((rest[..<open], false)) }
            pieces.append((rest[rest.index(after: open)..<close], true))
            rest = rest[rest.index(after: close)...]
        }
        if !rest.isEmpty { pieces.append((rest, false)) }
        return pieces
    }
}
