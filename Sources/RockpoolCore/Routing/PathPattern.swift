// Patterns of `routes[].match`, and paths with variables of `resources` (docs/reference/configuration.md#routes,
// docs/reference/configuration.md#shapes-of-paths).

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

/// A template, split once: `/v1/notes/{id}`, `/issues/{id}.json`, `/Products({id})`, `/lines/{order}/{line}`, `/products?id=eq.{id}`.
package struct PathTemplate: Hashable, Sendable {
    /// The segments of the path; a slash at its end is left out.
    let segments: [TemplateText]
    /// The parameter of the query that names a row; nil for a path alone.
    let row: Row?
    /// True if paths end in a slash.
    let endsInSlash: Bool
    /// The names of the variables, in their order.
    package let variables: [String]

    /// True if the query, not the path, names an item.
    package var namesRow: Bool { row != nil }

    /// A parameter of the query whose value has a variable.
    struct Row: Hashable, Sendable {
        /// Decoded.
        let name: String
        let value: TemplateText
    }

    package init(_ text: String) {
        let path = text.prefix { $0 != "?" }
        let query = text.dropFirst(path.count + 1)
        segments = path.canonicalEscapes[...].pathSegments.withoutTrailingSlash.map(TemplateText.init)
        endsInSlash = path.count > 1 && path.hasSuffix("/")
        row = query.split(separator: "&").lazy.map { Row($0) }.first { !$0.value.names.isEmpty }
        variables = segments.flatMap(\.names) + (row?.value.names ?? [])
    }

    /// Returns the values of the variables in a path, percent-encoded; nil if it does not match.
    /// - Parameters:
    ///   - path: the segments, without the empty one after a slash at the end.
    ///   - query: what names a row; nil without a query.
    func values(of path: some Collection<Substring>, query: Substring? = nil) -> [Substring]? {
        guard path.count == segments.count else { return nil }
        var values: [Substring] = []
        for (segment, template) in zip(path, segments) {
            guard template.append(valuesOf: segment, to: &values) else { return nil }
        }
        guard let row else { return values }
        var found: [Substring] = []
        guard let value = query.flatMap({ row.value(in: $0) }), row.value.append(valuesOf: value[...], to: &found) else { return nil }
        return values + found.map { ServerID(text: String($0)).percentEncoded[...] }
    }

    /// Returns the path and query with these values, which are percent-encoded, in the order of `variables`.
    func target(_ values: [some StringProtocol]) -> String {
        var rest = values[...]
        var target = "/" + segments.map { $0.filled(from: &rest) }.joined(separator: "/")
        if endsInSlash { target += "/" }
        if let row { target += "?\(ServerID(text: row.name).percentEncoded)=" + row.value.filled(from: &rest) }
        return target
    }
}

extension PathTemplate.Row {
    /// - Parameter parameter: `name=value`, encoded.
    init(_ parameter: Substring) {
        let name = parameter.utf8.prefix { $0 != FieldByte.equals }
        self.name = FormEncoding.text(of: name)
        value = TemplateText(parameter.dropFirst(Substring(name).count + 1))
    }

    /// The decoded value of the parameter in a query that names nothing else: the other parameters are those of pages, orders and members.
    func value(in query: Substring) -> String? {
        var found: String?
        for parameter in CollectionQuery.parameters(in: String(query)) {
            if parameter.name == name {
                guard found == nil else { return nil }
                found = parameter.value
            } else if parameter.selects {
                return nil
            }
        }
        return found
    }

    /// What stands before the value of a parameter that selects what is equal to it: `eq.`.
    var equality: String { String(value.literals[0]) }
}

/// A text with variables: a segment of a path, or the value of a parameter.
struct TemplateText: Hashable, Sendable {
    /// What stands before, between and after the variables.
    let literals: [Substring]
    let names: [String]

    init(_ text: Substring) {
        var (literals, names, rest) = ([Substring](), [String](), text)
        while let open = rest.firstIndex(of: "{"), let close = rest[open...].firstIndex(of: "}") {
            literals.append(rest[..<open])
            names.append(String(rest[rest.index(after: open)..<close]))
            rest = rest[rest.index(after: close)...]
        }
        self.literals = literals + [rest]
        self.names = names
    }

    /// True if one variable is the whole text.
    var isVariable: Bool { names.count == 1 && literals[0].isEmpty && literals[1].isEmpty }

    /// True if the variables are keys in brackets, as of OData: their text may be quoted.
    var isKey: Bool { !names.isEmpty && literals[0].contains("(") }

    /// Appends the values of the variables in a text; false if it does not match. No value is empty.
    func append(valuesOf text: Substring, to values: inout [Substring]) -> Bool {
        if names.isEmpty { return text == literals[0] }
        if isVariable {
            values.append(text)
            return !text.isEmpty
        }
        let text = isKey ? text.replacing("%27", with: "'") : text
        guard text.hasPrefix(literals[0]) else { return false }
        var rest = text.dropFirst(literals[0].count)
        for (index, literal) in literals.dropFirst().enumerated() {
            let end: Substring.Index
            if index == names.count - 1 {
                guard rest.hasSuffix(literal) else { return false }
                end = rest.index(rest.endIndex, offsetBy: -literal.count)
            } else {
                guard !literal.isEmpty, let next = rest.firstRange(of: literal) else { return false }
                end = next.lowerBound
            }
            guard rest.startIndex < end else { return false }
            values.append(rest[..<end])
            rest = rest[end...].dropFirst(literal.count)
        }
        return true
    }

    /// Returns the text with the first of these values, and removes them.
    func filled(from values: inout ArraySlice<some StringProtocol>) -> String {
        var text = String(literals[0])
        for literal in literals.dropFirst() {
            text += values.popFirst().map { String($0) } ?? ""
            text += literal
        }
        return text
    }
}

extension StringProtocol {
    /// A value of a template as the members of a representation have it: decoded, and without the quotes of a key.
    func keyText(isKey: Bool) -> String {
        let text = Substring(self).percentDecoded ?? String(self)
        guard isKey, text.utf8.count >= 2, text.hasPrefix("'"), text.hasSuffix("'") else { return text }
        return String(text.dropFirst().dropLast()).replacing("''", with: "'")
    }
}

extension [Substring] {
    /// The segments without the empty one that a trailing slash produces.
    var withoutTrailingSlash: [Substring] { last?.isEmpty == true ? dropLast() : self }
}
