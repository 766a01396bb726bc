// The head of a response parsed from text without any decoder of the product, which a test must not trust (RFC 9112 §4).

/// Status line and fields.
package struct MessageHead: Hashable, Sendable {
    /// A field line.
    package struct Field: Hashable, Sendable {
        package let name: String
        package let value: String
    }

    /// The status code; 0 when the first line is not a status line.
    package let status: Int
    /// The version of HTTP, such as `HTTP/1.1` or `HTTP/2`.
    package let version: String
    /// The fields in order, with surrounding spaces removed from the values.
    package let fields: [Field]

    /// Parses a head, with or without the empty line at its end.
    package init(_ text: some StringProtocol) {
        let lines = text.split(whereSeparator: \.isNewline)
        version = lines.first.map { String($0.prefix { $0 != " " }) } ?? ""
        status = lines.first?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        fields = lines.dropFirst().compactMap { line in
            guard let colon = line.firstIndex(of: ":") else { return nil }
            return Field(name: line[..<colon].lowercased(), value: Self.trimmed(line[line.index(after: colon)...]))
        }
    }

    /// Returns the values of every field with this name, joined by commas; nil when there is none.
    package subscript(name: String) -> String? {
        let values = fields.filter { $0.name == name.lowercased() }.map(\.value)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    private static func trimmed(_ text: some StringProtocol) -> String {
        String(text.drop { $0 == " " || $0 == "\t" }.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
    }
}
