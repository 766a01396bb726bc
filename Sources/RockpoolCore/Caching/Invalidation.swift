// The entries that a write or an origin invalidates (RFC 9111 §4.4; docs/caching.md#invalidation).
package import HTTPTypes
import RawStructuredFieldValues

/// The URIs of the entries that an exchange invalidates.
package enum Invalidation {
    /// Absolute URLs: the target, same-origin `Location` and `Content-Location`, and the object that an upload completes; empty unless the
    /// method is unsafe and the write succeeded.
    package static func targets(request: RequestHead, response: ResponseHead) -> [String] {
        guard (200...399).contains(response.status), !request.method.isSafe else { return [] }
        var targets = [request.url]
        for name in [HTTPField.Name.location, .contentLocation] {
            guard let reference = response.fields.single(name),
                let target = URIReference.resolve(reference, origin: request.origin, target: request.target)
            else { continue }
            if !targets.contains(target) { targets.append(target) }
        }
        let others = (WebDAVEffect(request)?.resources ?? []) + [uploadedObject(of: request)].compactMap(\.self)
        for target in others where !targets.contains(target) { targets.append(target) }
        return targets
    }

    /// The URL of the object that S3 makes of uploaded parts (`CompleteMultipartUpload`); nil for another request.
    package static func uploadedObject(of request: RequestHead) -> String? {
        guard request.method == .post, let query = request.target.split(separator: "?", maxSplits: 1).dropFirst().first,
            query.split(separator: "&").contains(where: { $0.hasPrefix("uploadId=") })
        else { return nil }
        return request.origin.url + request.path
    }

    /// Prefixes of URLs that a successful write moves, copies or deletes with all that is below them; empty for any other write.
    package static func trees(request: RequestHead, response: ResponseHead) -> [String] {
        (200...299).contains(response.status) ? WebDAVEffect(request)?.trees ?? [] : []
    }
}

/// The effect of a WebDAV write on other resources than its target (RFC 4918 §9).
package struct WebDAVEffect: Hashable, Sendable {
    /// URLs of single resources: source, destination, and the collections that list them.
    package private(set) var resources: [String] = []
    /// Prefixes of URLs, each ending in a slash: everything below a resource that was moved, copied over or deleted.
    package private(set) var trees: [String] = []

    /// Nil for a write that affects its target only.
    package init?(_ request: RequestHead) {
        switch request.method.rawValue {
        case "DELETE": note(tree: request.target, request)
        case "MOVE": note(tree: request.target, request)
        case "COPY", "MKCOL", "PROPPATCH": noteResource(request.target, request)
        default: return nil
        }
        guard ["MOVE", "COPY"].contains(request.method.rawValue), let destination = Self.destination(of: request) else { return }
        note(tree: destination, request)
    }

    /// The path that `Destination` names at the same origin (RFC 4918 §10.3).
    package static func destination(of request: RequestHead) -> String? {
        guard let value = request.fields.value(of: "destination"),
            let url = URIReference.resolve(value, origin: request.origin, target: request.target)
        else { return nil }
        return String(url.dropFirst(request.origin.url.count))
    }

    private mutating func note(tree target: String, _ request: RequestHead) {
        noteResource(target, request)
        trees.append(request.origin.url + Self.path(target) + "/")
    }

    /// The resource with and without a slash at its end, and the collection that lists it.
    private mutating func noteResource(_ target: String, _ request: RequestHead) {
        let path = Self.path(target)
        guard !path.isEmpty else { return }
        let parent = path[...(path.lastIndex(of: "/") ?? path.startIndex)]
        resources += [path, path + "/", String(parent)].map { request.origin.url + $0 }
    }

    /// The path without query and without a slash at its end; empty for the root.
    private static func path(_ target: String) -> String {
        var path = target.prefix { $0 != "?" }
        while path.hasSuffix("/") { path.removeLast() }
        return String(path)
    }
}

/// Groups of responses (RFC 9875). A name is valid within one origin only; the lookup key includes `RequestHead.origin`.
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

/// Copies that must not be used as fresh any more (docs/fleet.md#copies).
package enum StalePlace: Hashable, Sendable {
    /// Those of an absolute URL.
    case url(String)
    /// Those whose URL begins so.
    case tree(String)
    /// Those of a cache group of an origin, given as its URL (RFC 9875).
    case group(String, origin: String)
    /// Those that the writer in a partition reads, and that may show or list what was written at a URL.
    case near(String, partition: String)
    /// Those that a purge selects, in the form of the cache.
    case purge(String)

    /// What a write makes out of date by its answer.
    package static func after(_ response: ResponseHead, to request: RequestHead) -> [StalePlace] {
        Invalidation.targets(request: request, response: response).map { .url($0) }
            + Invalidation.trees(request: request, response: response).map { .tree($0) }
            + CacheGroups.invalidated(by: response, to: request).map { .group($0, origin: request.origin.url) }
    }

    /// The name of the case.
    package var kind: String {
        switch self {
        case .url: "url"
        case .tree: "tree"
        case .group: "group"
        case .near: "near"
        case .purge: "purge"
        }
    }

    /// The text that belongs to the kind. An origin has no space, and neither has a partition.
    package var place: String {
        switch self {
        case .url(let url), .tree(let url): url
        case .group(let name, let origin): "\(origin) \(name)"
        case .near(let url, let partition): "\(partition) \(url)"
        case .purge(let selection): selection
        }
    }

    /// - Returns: nil for a kind of a newer version.
    package init?(kind: String, place: String) {
        switch kind {
        case "url": self = .url(place)
        case "tree": self = .tree(place)
        case "group":
            guard let space = place.firstIndex(of: " ") else { return nil }
            self = .group(String(place[place.index(after: space)...]), origin: String(place[..<space]))
        case "near":
            guard let space = place.firstIndex(of: " ") else { return nil }
            self = .near(String(place[place.index(after: space)...]), partition: String(place[..<space]))
        case "purge": self = .purge(place)
        default: return nil
        }
    }
}
