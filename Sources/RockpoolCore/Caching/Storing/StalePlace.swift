// What one gateway has found out of date, in a form that others can apply to their copies (docs/fleet.md#copies; RFC 9111 §4.4).
import HTTPTypes

/// Copies that must not be used as fresh any more.
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
