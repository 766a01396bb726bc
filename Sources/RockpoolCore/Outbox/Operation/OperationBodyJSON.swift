// An operation's body as members of a JSON document, and back: by one rule in both directions, so that a document read can be sent
// (docs/reference/admin-api.md#operation-document).

/// `body` contains JSON embedded and other text as a string; `bodyBase64` contains the bytes of anything else.
package enum OperationBodyJSON {
    /// Returns the member, one of the two, for a body of this type.
    package static func members(of bytes: [UInt8], contentType: String?) -> [(String, JSONValue)] {
        if bytes.isEmpty { return [("body", .null)] }
        if isJSON(contentType) {
            if let value = try? JSONValue.parse(bytes), !value.isNull { return [("body", value)] }
        } else if let text = String(validating: bytes, as: UTF8.self) {
            return [("body", .string(text))]
        }
        return [("bodyBase64", .string(Base64.encode(bytes)))]
    }

    /// Returns the bytes of a `body` for a request of this type; none for null.
    package static func bytes(of body: JSONValue, contentType: String?) -> [UInt8] {
        if body.isNull { return [] }
        if !isJSON(contentType), let text = body.string { return Array(text.utf8) }
        return body.serialized()
    }

    /// RFC 8259, and the `+json` of RFC 6839 §3.1.
    private static func isJSON(_ contentType: String?) -> Bool {
        guard let essence = contentType.map({ $0.prefix { $0 != ";" } })?.lowercased() else { return false }
        let type = FieldList.trimmed(essence[...])
        return type == "application/json" || type.hasSuffix("+json")
    }
}
