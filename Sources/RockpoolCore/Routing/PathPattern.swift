// Patterns of `routes[].match`: `GET /v1/me`, `/v1/media/**` (docs/reference/configuration.md#routes).

/// A compiled pattern. The path is compared segment by segment, without percent-decoding but under its canonical spelling.
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
    package init(_ text: String) { self.init(text, isLenient: false) }

    /// - Parameter isLenient: True for a pattern of paths as a lenient server reads them.
    init(_ text: String, isLenient: Bool) {
        let words = text.split(separator: " ", maxSplits: 1)
        method = words.count == 2 ? String(words[0]) : nil
        let spellings = PathSpellings(words.last.map { Substring($0).trimmingOWS() } ?? "")
        segments = (isLenient ? spellings.lenient ?? spellings.plain : spellings.plain).map(Self.segment)
        count = segments.count { $0 != .any }
    }

    /// True if a request matches. `path` is without the query.
    package func matches(method: String, path: String) -> Bool {
        matches(method: method, segments: PathSpellings(path[...]).plain)
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

/// The spellings of one path that are compared with patterns.
struct PathSpellings {
    /// The segments of what the request names, equal for all equivalent spellings (RFC 3986 §6.2.2).
    let plain: [Substring]

    /// - Parameter path: A path without its query.
    init(_ path: Substring) {
        plain = path.utf8.contains(UInt8(ascii: "%")) ? path.canonicalEscapes[...].pathSegments : path.pathSegments
    }

    /// The segments that a lenient server may read in the path, which is more than RFC 3986 permits: escapes decoded, also those of slashes
    /// and of escapes, backslashes as slashes, no parameters, no empty segments, no trailing slash, and dot segments resolved. What a
    /// configuration forbids applies to this spelling too. Nil if it is `plain`.
    var lenient: [Substring]? {
        guard plain != [""], !plain.allSatisfy(\.hasOneReading) else { return nil }
        var bytes = Array(plain.joined(separator: "/").utf8)
        // An escape may stand for an escape.
        for _ in 0..<4 where bytes.contains(UInt8(ascii: "%")) { bytes = FormEncoding.decoded(bytes, plusIsSpace: false) }
        var kept: [Substring] = []
        for segment in bytes.split(whereSeparator: { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") }) {
            let name = Substring(String(decoding: segment.prefix { $0 != UInt8(ascii: ";") }, as: UTF8.self))
            if name == ".." { _ = kept.popLast() } else if !name.isEmpty, name != "." { kept.append(name) }
        }
        return kept.isEmpty ? [""] : kept
    }
}

extension StringProtocol {
    /// The path as a lenient server may read it (`PathSpellings.lenient`).
    var lenientPath: String {
        let spellings = PathSpellings(Substring(self))
        return "/" + (spellings.lenient ?? spellings.plain).joined(separator: "/")
    }
}

extension Substring {
    /// True for a segment that strict and lenient servers read in the same way.
    fileprivate var hasOneReading: Bool {
        switch utf8.first {
        case nil: false
        case UInt8(ascii: ".") where self == "." || self == "..": false
        default: utf8.allSatisfy { $0 != UInt8(ascii: "%") && $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: "\\") }
        }
    }

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
