// Groups of stored responses that an origin invalidates together (RFC 9875).
package import HTTPTypes
import RawStructuredFieldValues

/// Groups of responses. A name is valid within one origin only; the lookup key includes `RequestHead.origin`.
package enum CacheGroups {
    /// Members of one field that are read, the least an implementation must support (§2, §3); later members are ignored.
    package static let maxNames = 32
    /// Longest name in characters; longer names are ignored. The required minimum is 32, but names that contain a UUID are longer.
    package static let maxNameLength = 128
    /// Bytes of a field: enough for what the two limits allow plus parameters; a longer field is ignored.
    package static let maxFieldBytes = Int.kib(4)

    /// The groups a response belongs to by `Cache-Groups` (§2), without duplicates. A field that is not a list of strings is ignored whole.
    package static func names(in fields: HTTPFields) -> [String] { strings(fields.value(of: "cache-groups")) }

    /// The same, with the tags of `CacheTags`.
    package static func all(in fields: HTTPFields) -> [String] {
        let names = names(in: fields)
        return names + CacheTags.names(in: fields).filter { !names.contains($0) }
    }

    /// The groups of the request's origin to be invalidated, by `Cache-Group-Invalidation` (§3). The field counts only
    /// in responses to unsafe methods, and only if the write itself would invalidate its target, so not in an error (RFC 9111 §4.4).
    /// Invalidation does not cascade: a response invalidated through one group does not invalidate its other groups (§2.2.1).
    package static func invalidated(by response: ResponseHead, to request: RequestHead) -> [String] {
        guard (200...399).contains(response.status), !request.method.isSafe else { return [] }
        return strings(response.fields.value(of: "cache-group-invalidation"))
    }

    private static func strings(_ value: String?) -> [String] {
        guard let value, value.utf8.count <= maxFieldBytes else { return [] }
        var parser = StructuredFieldValueParser(Array(value.utf8))
        guard let members = try? parser.parseListFieldValue() else { return [] }
        var names: [String] = []
        for (index, member) in members.enumerated() {
            guard case .item(let item) = member, case .string(let name) = item.rfc9651BareItem else { return [] }
            if index < maxNames, name.utf8.count <= maxNameLength, !names.contains(name) { names.append(name) }
        }
        return names
    }
}
