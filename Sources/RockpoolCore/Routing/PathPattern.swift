// Patterns of `routes[].match`: `GET /v1/me`, `/v1/media/**` (docs/reference/configuration.md#routes).

/// A compiled pattern. The path is compared as received, without percent-decoding, segment by segment.
package struct PathPattern: Hashable, Sendable {
    enum Segment: Hashable, Sendable {
        case literal(Substring)
        /// A segment with one `*` among other characters: `*.jpg`.
        case around(prefix: Substring, suffix: Substring)
        /// `*`: one segment.
        case one
        /// `**`: any number of segments, including none.
        case any
    }

    private let method: String?
    private let segments: [Segment]
    /// The minimum number of segments of a path, or the exact number without `**`; a cheap test that rejects most patterns.
    private let count: Int

    /// Parses `METHOD pattern` or `pattern`. A pattern for GET also matches HEAD, which requests the same resource (RFC 9110 §9.3.2).
    package init(_ text: String) {
        let words = text.split(separator: " ", maxSplits: 1)
        method = words.count == 2 ? String(words[0]) : nil
        segments = (words.last.map { Substring($0).trimmingOWS() } ?? "").pathSegments.map(Self.segment)
        count = segments.count { $0 != .any }
    }

    /// True if a request matches. `path` is without the query.
    package func matches(method: String, path: String) -> Bool {
        matches(method: method, segments: path[...].pathSegments)
    }

    /// The same for a path that was split once to be compared with many patterns.
    func matches(method: String, segments path: [Substring]) -> Bool {
        guard self.method == nil || self.method == method || (self.method == "GET" && method == "HEAD") else { return false }
        guard path.count == count || (path.count > count && segments.count > count) else { return false }
        var (index, at) = (0, 0)
        var retry: (index: Int, at: Int)?  // where the last `**` would match one more segment
        while at < path.count {
            if index < segments.count, case .any = segments[index] {
                retry = (index + 1, at)
                index += 1
            } else if index < segments.count, segments[index].matches(path[at]) {
                index += 1
                at += 1
            } else if let last = retry {
                retry = (last.index, last.at + 1)
                (index, at) = (last.index, last.at + 1)
            } else {
                return false
            }
        }
        return segments[index...].allSatisfy { $0 == .any }
    }

    private static func segment(_ text: Substring) -> Segment {
        switch text {
        case "*": return .one
        case "**": return .any
        default:
            let parts = text.split(separator: "*", omittingEmptySubsequences: false)
            return parts.count == 2 ? .around(prefix: parts[0], suffix: parts[1]) : .literal(text)
        }
    }
}

extension PathPattern.Segment {
    fileprivate func matches(_ segment: Substring) -> Bool {
        switch self {
        case .literal(let text): text == segment
        case .around(let prefix, let suffix):
            segment.utf8.count >= prefix.utf8.count + suffix.utf8.count && segment.hasPrefix(prefix) && segment.hasSuffix(suffix)
        case .one, .any: true
        }
    }
}

extension Substring {
    /// The segments between the slashes of a path; the leading slash starts the first. A trailing slash produces an empty last segment.
    var pathSegments: [Substring] {
        var segments: [Substring] = []
        segments.reserveCapacity(8)
        var start = utf8.first == UInt8(ascii: "/") ? utf8.index(after: startIndex) : startIndex
        while let slash = utf8[start...].firstIndex(of: UInt8(ascii: "/")) {
            segments.append(self[start..<slash])
            start = utf8.index(after: slash)
        }
        segments.append(self[start...])
        return segments
    }
}
