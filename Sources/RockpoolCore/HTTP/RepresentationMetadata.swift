// Media types of a message's content, mainly to distinguish pages from data (RFC 9110 §8.3.1, §12.5.1), of JSON bodies and of repositories.
package import HTTPTypes

/// The content type of a message.
package enum MediaType {
    /// `type/subtype` in lower case; nil if no type is given.
    static func essence(of fields: HTTPFields) -> String? {
        fields.value(of: "content-type").flatMap(essence(of:))
    }

    /// `type/subtype` of a field's value.
    static func essence(of value: String) -> String? {
        let end = value.utf8.firstIndex { $0 == UInt8(ascii: ";") || $0 == FieldByte.comma } ?? value.endIndex
        let essence = FieldList.trimmed(value[..<end]).lowercased()
        return essence.isEmpty ? nil : essence
    }

    /// True if the content is JSON of any kind (RFC 6839 §3.1).
    package static func isJSON(_ fields: HTTPFields) -> Bool {
        essence(of: fields).map { $0 == "application/json" || $0 == "text/json" || $0.hasSuffix("+json") } ?? false
    }

    /// True if the content is an HTML page, as portals and login forms are.
    package static func isPage(_ fields: HTTPFields) -> Bool { essence(of: fields).map(isPage) ?? false }

    static func isPage(_ essence: String) -> Bool { essence == "text/html" || essence == "application/xhtml+xml" }

    /// True if a range of the `Accept` field matches the content's type, whatever its weight. All JSON types match each other.
    static func isAccepted(_ fields: HTTPFields, by accept: String) -> Bool {
        let type = essence(of: fields)
        return FieldList.members(of: accept).contains { member in
            guard let range = essence(of: String(member)) else { return false }
            if range == "*/*" { return true }
            guard let type else { return false }
            if range.hasSuffix("/*") { return type.hasPrefix(range.dropLast()) }
            return range == type || range.hasSuffix("json") && type.hasSuffix("json")
        }
    }
}

/// The media types that a request asks for (RFC 9110 §12.5.1).
extension MediaType {
    /// True if the client expects pages: its `Accept` names HTML.
    static func isAskedForPages(_ request: RequestHead) -> Bool { request.fields[.accept]?.contains(anyCase: "html") ?? false }
}

/// The JSON format of a request's content type (RFC 8259 §11, RFC 6839 §3.1, RFC 7396 §4, RFC 6902 §6).
enum JSONBodyType: Hashable {
    /// `application/json`; in a PATCH, an object of that type is a merge patch by convention.
    case json
    /// Another `+json` type: a representation; in a PATCH, members of it.
    case otherJSON
    case mergePatch
    case jsonPatch
    /// Not JSON.
    case other

    /// The type for a `Content-Type` value; a body without one is treated as JSON if it parses.
    init(_ contentType: String?) {
        switch contentType.map({ MediaType.essence(of: $0) ?? "" }) {
        case nil, "application/json", "text/json": self = .json
        case "application/merge-patch+json": self = .mergePatch
        case "application/json-patch+json": self = .jsonPatch
        // What is called a patch has rules of its own.
        case let type?: self = type.hasSuffix("+json") && !type.contains("-patch") ? .otherJSON : .other
        }
    }
}

/// The messages of the protocols by which repositories are fetched and pushed (https://git-scm.com/docs/http-protocol;
/// https://repo.mercurial-scm.org/hg/help/internals.wireprotocol; docs/caching.md#storability).
enum RepositoryExchange {
    /// The parts of such an exchange, by what may be stored of them.
    enum Part {
        /// Part of a fetch from git: stored where the route says so, so that what was fetched once can be fetched again while the server is
        /// away.
        case fetch
        /// What a push begins with: never stored, because a push would build on an old state.
        case push
        /// Mercurial names its question in fields that no `Vary` mentions.
        case other
    }

    /// The part of an exchange that an answer is; nil for any other answer. The plain files of a repository without a server program are of
    /// other types.
    static func part(_ response: ResponseHead) -> Part? {
        guard let type = MediaType.essence(of: response.fields) else { return nil }
        if type.hasPrefix("application/x-git-receive-pack-") { return .push }
        if type.hasPrefix("application/x-git-upload-pack-") { return .fetch }
        return type.hasPrefix("application/x-git-") || type.hasPrefix("application/mercurial-") ? .other : nil
    }

    /// True for the request that pushes: a write on any route.
    static func isPush(_ request: RequestHead) -> Bool { request.path.hasSuffix("/git-receive-pack") }
}

/// An entity tag. Unquoted tags, which some servers send, are kept unchanged (RFC 9110 §8.8.3).
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
