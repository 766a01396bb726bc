// Entity tags, lists of them and their two comparisons (RFC 9110 §8.8.3).

/// An entity tag. Unquoted tags, which some servers send, are kept unchanged.
package struct EntityTag: Hashable, Sendable {
    package var isWeak: Bool
    /// The opaque part, with its quotes.
    package var opaque: String

    /// The tag of an `ETag` field; nil when the value is empty.
    package init?(_ text: some StringProtocol) {
        let trimmed = FieldList.trimmed(Substring(text))
        isWeak = trimmed.hasPrefix("W/")
        opaque = String(isWeak ? trimmed.dropFirst(2) : trimmed)
        if opaque.isEmpty { return nil }
    }

    /// True if the tag identifies exact bytes: it is not weak, and is quoted.
    package var isStrong: Bool { !isWeak && opaque.utf8.count >= 2 && opaque.hasPrefix("\"") && opaque.hasSuffix("\"") }

    /// The value of an `ETag` field for use in `If-Match`; nil for a weak one, which never matches there (RFC 9110 §13.1.1).
    package static func condition(in value: String?) -> String? { value.flatMap { $0.hasPrefix("W/") ? nil : $0 } }

    /// The tag in field syntax.
    package var fieldValue: String { isWeak ? "W/\(opaque)" : opaque }

    /// The opaque part without its quotes, which some clients and servers leave out.
    package var bare: Substring {
        let isQuoted = opaque.utf8.count >= 2 && opaque.hasPrefix("\"") && opaque.hasSuffix("\"")
        return isQuoted ? opaque.dropFirst().dropLast() : opaque[...]
    }

    /// True if a condition with this tag, with or without its quotes, means the state that has the other one.
    package func names(_ other: EntityTag) -> Bool { bare.utf8.elementsEqual(other.bare.utf8) }
    /// Weak comparison: the same opaque part, byte for byte.
    package func matchesWeakly(_ other: EntityTag) -> Bool { opaque.utf8.elementsEqual(other.opaque.utf8) }
    /// Strong comparison: the same opaque part, and neither is weak.
    package func matchesStrongly(_ other: EntityTag) -> Bool { !isWeak && !other.isWeak && matchesWeakly(other) }

    /// The tags of an `If-None-Match` or `If-Match` list. Within quotes a comma is part of the tag, and a backslash is not an escape.
    package static func list(in value: String) -> [EntityTag] {
        var tags: [EntityTag] = []
        var start = value.utf8.startIndex
        var isQuoted = false
        for index in value.utf8.indices {
            switch value.utf8[index] {
            case FieldByte.quote: isQuoted.toggle()
            case FieldByte.comma where !isQuoted:
                if let tag = EntityTag(value[start..<index]) { tags.append(tag) }
                start = value.utf8.index(after: index)
            default: break
            }
        }
        if let tag = EntityTag(value[start...]) { tags.append(tag) }
        return tags
    }
}
