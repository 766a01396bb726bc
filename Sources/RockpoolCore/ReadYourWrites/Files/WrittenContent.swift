// Decides whether the body of a PUT is what a read of its target shows afterwards (RFC 9110 §9.3.4; docs/outbox.md#files-and-collections).
package import HTTPTypes

/// The body of a PUT to a path without a declared resource.
package struct WrittenContent: Sendable {
    private let type: String?
    private let body: [UInt8]

    /// - Parameters:
    ///   - fields: those of the request.
    ///   - body: without a transfer's own coding.
    package init(_ fields: HTTPFields, body: [UInt8]) {
        type = MediaType.essence(of: fields)
        self.body = body
    }

    /// Types that say nothing about content.
    private static let generic: Set<String> = ["application/octet-stream", "binary/octet-stream", "application/x-binary"]

    /// True for a form: an instruction to the server, never a representation.
    private var isForm: Bool { type == "application/x-www-form-urlencoded" || type == "multipart/form-data" }

    /// True if the content can be the representation of its target: no form, and, where a representation is known, of the same type and, in
    /// JSON, with all its members.
    /// - Parameters:
    ///   - known: the head of the last representation; nil if none is known.
    ///   - content: its body, decoded; used for JSON only. Nil if it is not at hand.
    package func mayRepresent(_ known: ResponseHead?, content: [UInt8]?) -> Bool {
        guard !isForm else { return false }
        guard let known, let knownType = MediaType.essence(of: known.fields) else { return true }
        let isUntyped = type.map(Self.generic.contains) ?? true
        guard MediaType.isJSON(known.fields) else { return isUntyped || Self.generic.contains(knownType) || type == knownType }
        guard isUntyped || type == knownType || type.map({ MediaType.isJSON([.contentType: $0]) }) == true else { return false }
        guard let value = try? JSONValue.parse(body) else { return false }
        guard let shown = content.flatMap({ try? JSONValue.parse($0) }) else { return true }
        switch (shown, value) {
        case (.object(let shown), .object(let value)): return shown.names.allSatisfy { value[$0] != nil }
        case (.array, .array): return true
        default: return shown.object == nil && shown.array == nil && value.object == nil && value.array == nil
        }
    }
}
