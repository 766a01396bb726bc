// The head of a response as text, read by eye: no decoder of the product is trusted here (RFC 9112 §4).

/// Status line and fields.
package struct MessageHead: Hashable, Sendable {
    /// A field line.
    package struct Field: Hashable, Sendable {
        package let name: String
        package let value: String
    }

    /// 0 when the status line is none.
    package let status: Int
    /// In order, values without the spaces around them.
    package let fields: [Field]

    /// Reads a head, with or without the empty line at its end.
    package init(_ text: some StringProtocol) {
        let lines = text.split(whereSeparator: \.isNewline)
        status = lines.first?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        fields = lines.dropFirst().compactMap { line in
            guard let colon = line.firstIndex(of: ":") else { return nil }
            return Field(name: line[..<colon].lowercased(), value: Self.trimmed(line[line.index(after: colon)...]))
        }
    }

    /// The values of every field with this name, joined by commas; nil when there is none.
    package subscript(name: String) -> String? {
        let values = fields.filter { $0.name == name.lowercased() }.map(\.value)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    private static func trimmed(_ text: some StringProtocol) -> String {
        String(text.drop { $0 == " " || $0 == "\t" }.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
    }
}
