// The tags that origins give to content delivery networks: they name cache groups as `Cache-Groups` does (docs/caching.md#invalidation).
package import HTTPTypes

/// `Surrogate-Key` (words), `Cache-Tag` (members of a list) and `xkey` (either).
package enum CacheTags {
    /// The fields, in lower case.
    static let fields: Set<String> = ["surrogate-key", "cache-tag", "xkey"]
    /// Tags of one response that are read.
    package static let maxTags = 128

    /// The tags in a message's fields, without duplicates.
    package static func names(in fields: HTTPFields) -> [String] {
        var names: [String] = []
        for field in fields where Self.fields.contains(field.name.canonicalName) {
            let isList = field.name.canonicalName != "surrogate-key"
            let isWords = field.name.canonicalName != "cache-tag"
            let parts = field.value.split { character in
                (isList && character == ",") || (isWords && (character == " " || character == "\t"))
            }
            for part in parts {
                let name = String(FieldList.trimmed(part))
                guard !name.isEmpty, name.utf8.count <= CacheGroups.maxNameLength, !names.contains(name), names.count < maxTags else {
                    continue
                }
                names.append(name)
            }
        }
        return names
    }

    /// Removes the tags: they are about caches, and tell clients about the origin's inside.
    package static func remove(from fields: inout HTTPFields) {
        guard fields.contains(where: { Self.fields.contains($0.name.canonicalName) }) else { return }
        fields = HTTPFields(fields.filter { !Self.fields.contains($0.name.canonicalName) })
    }
}
