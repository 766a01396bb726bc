// JSON values of optional texts.

extension JSONValue {
    /// Returns the string, or null.
    package static func optional(_ text: String?) -> JSONValue { text.map { .string($0) } ?? .null }
}
