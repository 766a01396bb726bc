// Which stored responses an origin has tied together, and when it lets go of them together (RFC 9875).
package import HTTPTypes
import RawStructuredFieldValues

/// Groups of responses. A name means something within one origin only: it is to be looked up together with `RequestHead.origin`.
package enum CacheGroups {
    /// Members of one field that are read, the least an implementation must support (§2, §3); those after them are not.
    package static let maxNames = 32
    /// Characters of one name that is heeded; longer ones are not. The least is 32; names with a UUID in them are longer.
    package static let maxNameLength = 128
    /// Bytes of a field, room for what the two limits allow and for parameters; a longer field is ignored.
    package static let maxFieldBytes = 4096

    /// The groups a response belongs to by `Cache-Groups` (§2), each once. A field that is no list of strings is ignored whole.
    package static func names(_ fields: HTTPFields) -> [String] { strings(fields.value(of: "cache-groups")) }

    /// The groups of the request's origin whose responses are to be invalidated, by `Cache-Group-Invalidation` (§3). It counts only
    /// in answers to unsafe methods, and only where the write itself would invalidate its target: not in an error (RFC 9111 §4.4).
    /// Invalidation does not cascade: what falls with a group does not take its other groups along (§2.2.1).
    package static func invalidated(by response: ResponseHead, to request: RequestHead) -> [String] {
        guard (200...399).contains(response.status), !Invalidation.isSafe(request.method) else { return [] }
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
