// The resources that a WebDAV write changes besides its target (RFC 4918 §9; docs/caching.md#invalidation).
import HTTPTypes

/// The effect of a WebDAV write on other resources than its target.
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
