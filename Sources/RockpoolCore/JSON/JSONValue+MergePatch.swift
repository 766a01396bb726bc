// JSON Merge Patch (RFC 7396): null removes, objects merge, everything else replaces.

extension JSONValue {
    /// This value with `patch` applied.
    package func merging(_ patch: JSONValue) -> JSONValue {
        guard case .object(let changes) = patch else { return patch }
        var members = object ?? JSONObject()
        for (name, change) in changes {
            members[name] = change.isNull ? nil : (members[name] ?? .null).merging(change)
        }
        return .object(members)
    }
}
