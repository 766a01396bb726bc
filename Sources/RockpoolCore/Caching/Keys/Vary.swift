// Matches requests with stored variants (RFC 9111 §4.1, RFC 9110 §12.5.5).
package import HTTPTypes

/// Selection by the request fields that `Vary` names.
package enum Vary {
    /// The request's fields that `response` varies by, normalised and sorted by name; fields absent from the request are missing. Nil if
    /// only the upstream can select: `*`, or a member that is not a field name.
    package static func selectingFields(response: ResponseHead, request: RequestHead) -> HTTPFields? {
        names(in: response.fields).map { selectingFields($0, of: request) }
    }

    /// The request's fields of these names, normalised and sorted by name.
    package static func selectingFields(_ names: [HTTPField.Name], of request: RequestHead) -> HTTPFields {
        var selecting = HTTPFields()
        for name in names.sorted(by: { $0.canonicalName < $1.canonicalName }) {
            guard let value = selectingValue(name, of: request) else { continue }
            selecting.append(HTTPField(name: name, value: value))
        }
        return selecting
    }

    /// The request's normalised value of a field; nil if it is absent, or has only cookies that identify no user.
    static func selectingValue(_ name: HTTPField.Name, of request: RequestHead) -> String? {
        request.fields.value(of: name.canonicalName).flatMap { selectingValue($0, of: name) }
    }

    static func selectingValue(_ value: String, of name: HTTPField.Name) -> String? {
        let normalized = VaryNormalization.normalized(value, of: name)
        return name == .cookie && normalized.isEmpty ? nil : normalized
    }

    /// The text that distinguishes the variants of a key: one line per field, so that different sets never share one text. The rule of a route
    /// makes no variant.
    package static func variantKey(_ selecting: HTTPFields) -> String {
        selecting.filter { $0.name != .rockpoolLifetime }.sorted { $0.name.canonicalName < $1.name.canonicalName }
            .map { "\($0.name.canonicalName): \($0.value)\n" }.joined()
    }

    /// The names in `Vary`, each once; nil if no request can be known to match.
    static func names(in fields: HTTPFields) -> [HTTPField.Name]? {
        var names: [HTTPField.Name] = []
        for field in fields where field.name == .vary {
            for member in FieldList.members(of: field.value) {
                guard member != "*", let name = HTTPField.Name(String(member)) else { return nil }
                if !names.contains(name) { names.append(name) }
            }
        }
        return names
    }
}
