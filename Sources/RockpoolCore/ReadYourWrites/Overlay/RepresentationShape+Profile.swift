// What the formats of APIs say about changes of a representation (docs/reference/configuration.md#profiles).

extension RepresentationShape {
    /// Returns the object with the changes of a PATCH. JSON:API replaces each attribute, and each member of a relationship, as a whole, and null is
    /// a value (JSON:API 1.1, "Updating Resources"); elsewhere a PATCH is a merge patch (RFC 7396).
    func merged(_ object: JSONValue, with patch: JSONValue) -> JSONValue {
        guard profile == .jsonapi, let changes = patch.object, var members = object.object else { return object.merging(patch) }
        for (name, change) in changes {
            switch name {
            case "attributes": members[name] = Self.replacing(in: members[name], by: change, depth: 1)
            case "relationships": members[name] = Self.replacing(in: members[name], by: change, depth: 2)
            default: members[name] = change
            }
        }
        return .object(members)
    }

    /// Returns the PATCH of JSON:API that makes one object another; nil for another format, or where it cannot express that.
    func patch(from old: JSONValue, to new: JSONValue) -> JSONValue? {
        guard profile == .jsonapi, let before = old.object, let after = new.object else { return nil }
        var patch = JSONObject([("type", after["type"] ?? before["type"] ?? .null), ("id", before["id"] ?? .null)])
        for name in ["attributes", "relationships"] {
            let (known, wanted) = (before[name]?.object ?? JSONObject(), after[name]?.object ?? JSONObject())
            guard known.names.allSatisfy({ wanted[$0] != nil }) else { return nil }
            let changed = wanted.filter { known[$0.name] != $0.value }
            if !changed.isEmpty { patch[name] = .object(JSONObject(changed.map { ($0.name, $0.value) })) }
        }
        let result = JSONValue.object(patch)
        return merged(old, with: result) == new ? result : nil
    }

    /// Returns the id by which HAL names an object without a member for it: the last segment of its own link.
    func linkedID(of object: JSONValue) -> String? {
        guard profile == .hal, let link = JSONPointer(tokens: ["_links", "self", "href"]).get(in: object)?.string else { return nil }
        // A link may be a template (RFC 6570).
        let path = link.prefix { $0 != "?" && $0 != "#" && $0 != "{" }
        return path.split(separator: "/").last?.percentDecoded
    }

    /// Replaces the members of an object at a depth.
    private static func replacing(in value: JSONValue?, by change: JSONValue, depth: Int) -> JSONValue {
        guard depth > 0, let changes = change.object else { return change }
        var members = value?.object ?? JSONObject()
        for (name, value) in changes { members[name] = replacing(in: members[name], by: value, depth: depth - 1) }
        return .object(members)
    }
}
