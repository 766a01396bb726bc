// The form of a document without its values (docs/reference/admin-api.md#cache).

extension JSONValue {
    /// The names of members and the nesting, without texts, numbers and ids: scalars are null, and an array holds its first object, or null if
    /// an element is none. Deep and wide documents are cut off.
    package var shape: JSONValue { shape(depth: 0) }

    private func shape(depth: Int) -> JSONValue {
        guard depth < 8 else { return .null }
        if let members = object {
            return .object(JSONObject(members.prefix(64).map { ($0.name, $0.value.shape(depth: depth + 1)) }))
        }
        guard let elements = array else { return .null }
        guard let first = elements.first else { return .array([]) }
        return .array([elements.allSatisfy { $0.object != nil } ? first.shape(depth: depth + 1) : .null])
    }
}
