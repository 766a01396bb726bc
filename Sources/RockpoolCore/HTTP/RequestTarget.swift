// The four forms of a request target, parsed strictly (RFC 9112 §3.2; docs/security-model.md#head-rules), references to other URIs, and
// links.
import HTTPTypes

/// A request target, by the form in which it was received.
package enum RequestTarget: Hashable, Sendable {
    /// `http://host/path?query`: sent by clients to a forward proxy. The path is never empty; `*` for OPTIONS of the whole server.
    case absolute(OriginAddress, pathAndQuery: String)
    /// `host:port`: CONNECT only.
    case authority(host: String, port: Int)
    /// `/path?query`: the origin follows from Host or from the listener.
    case origin(String)
    /// `*`: OPTIONS only.
    case asterisk

    /// The path prefix of Rockpool's own documents on every authority (docs/reference/behaviour.md#status-document).
    package static let ownPath = "/.well-known/rockpool/"

    /// Parses `target` in the one form that `method` and its first characters permit, or throws a 400. Path and query are unchanged,
    /// including percent-encoding, because only the upstream can interpret them.
    package static func parse(_ target: String, method: String) throws(Refusal) -> RequestTarget {
        if method == "CONNECT" { return try parseAuthority(target) }
        if target == "*" {
            guard method == "OPTIONS" else { throw .badRequest("the target * is for OPTIONS only") }
            return .asterisk
        }
        guard target.utf8.allSatisfy(isTargetByte) else {
            throw .badRequest("the target holds a character that a URI may not hold, or a fragment")
        }
        if target.utf8.first == UInt8(ascii: "/") { return .origin(target) }
        return try parseAbsolute(target, isOptions: method == "OPTIONS")
    }

    private static func parseAuthority(_ target: String) throws(Refusal) -> RequestTarget {
        let authority = try Authority.parse(Substring(target))
        guard let port = authority.port else { throw .badRequest("CONNECT needs host:port") }
        return .authority(host: authority.host, port: port)
    }

    private static func parseAbsolute(_ target: String, isOptions: Bool) throws(Refusal) -> RequestTarget {
        guard let colon = target.utf8.firstIndex(of: UInt8(ascii: ":")), target[colon...].utf8.starts(with: "://".utf8) else {
            throw .badRequest("the target is neither a path nor an absolute URI")
        }
        guard let scheme = OriginAddress.Scheme(rawValue: target[..<colon].lowercased()) else {
            throw .badRequest("the target's scheme is neither http nor https")
        }
        let rest = Substring(target[colon...].utf8.dropFirst(3))
        let end = rest.utf8.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? rest.endIndex
        guard !rest[..<end].utf8.contains(UInt8(ascii: "@")) else {
            throw .badRequest("the target carries userinfo")  // RFC 9110 §4.2.4
        }
        let authority = try Authority.parse(rest[..<end])
        let origin = OriginAddress(scheme: scheme, host: authority.host, port: authority.port)
        return .absolute(origin, pathAndQuery: pathAndQuery(of: rest[end...], isOptions: isOptions))
    }

    /// An empty path becomes `/`, or `*` for OPTIONS without a query (RFC 9112 §3.2.4).
    private static func pathAndQuery(of text: Substring, isOptions: Bool) -> String {
        if text.isEmpty { return isOptions ? "*" : "/" }
        return text.utf8.first == UInt8(ascii: "/") ? String(text) : "/" + text
    }

    /// Visible ASCII without `"#<>\^`{|}`. Brackets are accepted: strictly they belong in hosts only, but queries often contain them.
    static func isTargetByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "#"), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "\\"), UInt8(ascii: "^"),
            UInt8(ascii: "`"), UInt8(ascii: "{"), UInt8(ascii: "|"), UInt8(ascii: "}"):
            false
        default: (0x21...0x7E).contains(byte)
        }
    }
}

extension StringProtocol {
    /// A path or a URL under the spelling that all equivalent ones share: escapes in upper case, and none of them where the character needs
    /// none (RFC 3986 §6.2.2.1, §6.2.2.2). It names lanes, entities, keys and invalidations; a request is sent as its client has spelled it.
    package var canonicalEscapes: String {
        let (text, percent) = (String(self), UInt8(ascii: "%"))
        // Of a known type: the compiler knows how to search it.
        guard text.utf8.contains(percent) else { return text }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(utf8.count)
        var rest = Array(utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == percent, let high = rest.first.flatMap(FormEncoding.digit),
                let low = rest.dropFirst().first.flatMap(FormEncoding.digit)
            else {
                bytes.append(byte)
                continue
            }
            rest = rest.dropFirst(2)
            let meant = high << 4 | low
            if meant.isUnreserved { bytes.append(meant) } else { FormEncoding.percentEncode(meant, into: &bytes) }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension UInt8 {
    /// True for the characters that are the same with and without an escape (RFC 3986 §2.3).
    fileprivate var isUnreserved: Bool { isAlphanumeric || "-._~".utf8.contains(self) }
}

// MARK: - References

/// URI references in responses, relative to the request's target.
package enum URIReference {
    /// The absolute URL of `reference`, in the form of `RequestHead.url`; nil if it leads to another origin or cannot be parsed.
    package static func resolve(_ reference: String, origin: OriginAddress, target: String) -> String? {
        var rest = FieldList.trimmed(reference.prefix { $0 != "#" })
        if let scheme = scheme(of: rest) {
            guard scheme.lowercased() == origin.scheme.rawValue else { return nil }
            rest = rest.dropFirst(scheme.utf8.count + 1)
            guard rest.hasPrefix("//") else { return nil }
        }
        if rest.hasPrefix("//") {
            rest = rest.dropFirst(2)
            let authority = rest.prefix { $0 != "/" && $0 != "?" }
            guard names(authority, origin: origin) else { return nil }
            rest = rest.dropFirst(authority.count)
            if !rest.hasPrefix("/") { return origin.url + "/" + rest }
        }
        return origin.url + merged(rest, target: target)
    }

    private static func merged(_ reference: Substring, target: String) -> String {
        let base = target.prefix { $0 != "?" }
        if reference.isEmpty { return target }
        if reference.hasPrefix("?") { return String(base + reference) }
        let path = reference.prefix { $0 != "?" }
        let query = reference.dropFirst(path.count)
        if path.hasPrefix("/") { return withoutDots(path) + query }
        let folder = base.lastIndex(of: "/").map { base[...$0] } ?? "/"
        return withoutDots(folder + path) + query
    }

    /// RFC 3986 §5.2.4.
    private static func withoutDots(_ path: Substring) -> String {
        guard path.utf8.contains(0x2E) else { return String(path) }
        var kept: [Substring] = []
        let segments = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        for (index, segment) in segments.enumerated() {
            let isLast = index == segments.count - 1
            switch segment {
            case ".": if isLast { kept.append("") }
            case "..":
                _ = kept.popLast()
                if isLast { kept.append("") }
            default: kept.append(segment)
            }
        }
        return "/" + kept.joined(separator: "/")
    }

    private static func scheme(of text: Substring) -> Substring? {
        guard let colon = text.firstIndex(of: ":"), let first = text.utf8.first, FieldByte.isLetter(first) else { return nil }
        let scheme = text[..<colon]
        let isScheme = scheme.utf8.allSatisfy { FieldByte.isLetter($0) || FieldByte.isDigit($0) || [0x2B, 0x2D, 0x2E].contains($0) }
        return isScheme ? scheme : nil
    }

    /// True if `authority` is that of `origin`; an authority with user information never is.
    private static func names(_ authority: Substring, origin: OriginAddress) -> Bool {
        let host = origin.bracketedHost
        guard authority.utf8.count >= host.utf8.count,
            FieldByte.equal(authority.utf8.prefix(host.utf8.count), host.utf8)
        else { return false }
        let port = Substring(authority.utf8.dropFirst(host.utf8.count))
        if port.isEmpty || port == ":" { return origin.port == origin.scheme.defaultPort }
        return port.hasPrefix(":") && port.dropFirst().utf8.allSatisfy(FieldByte.isDigit) && Int(port.dropFirst()) == origin.port
    }
}

/// The target of a `Location`, classified by its distance from the request (RFC 9110 §10.2.2; docs/outbox.md#answers).
package enum RedirectTarget: Hashable, Sendable {
    /// Path and query at the same origin; a fragment is dropped.
    case sameOrigin(target: String)
    /// The same host with another scheme or port.
    case sameHost
    /// Another host, in lower case.
    case otherHost(String)
    /// A scheme other than http and https, such as an app's own or mailto.
    case otherScheme

    /// The target of `location` in a response to `request`.
    package init(_ location: String, from request: RequestHead) { self.init(location, origin: request.origin, target: request.target) }

    /// The target of `location` in a response to a request for `target` at `origin`.
    package init(_ location: String, origin: OriginAddress, target: String) {
        let reference = String(location.prefix { $0 != "#" })
        guard let (scheme, rest) = Self.networkPath(reference, base: origin.scheme) else {
            self = .sameOrigin(target: Self.resolved(reference, against: target))
            return
        }
        guard let scheme else {
            self = .otherScheme
            return
        }
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        let (host, port) = Self.hostAndPort(of: authority)
        guard host == origin.host else {
            self = .otherHost(host)
            return
        }
        guard scheme == origin.scheme, (port ?? origin.scheme.defaultPort) == origin.port else {
            self = .sameHost
            return
        }
        let path = rest.dropFirst(authority.count)
        self = .sameOrigin(target: path.hasPrefix("/") ? String(path) : "/" + path)
    }

    /// The other host; nil for any other kind of target.
    package var otherHost: String? { if case .otherHost(let host) = self, !host.isEmpty { host } else { nil } }

    /// The scheme and the rest of `scheme://rest` or `//rest`; nil for a path. The scheme is nil if it is neither http nor https.
    private static func networkPath(_ reference: String, base: OriginAddress.Scheme) -> (OriginAddress.Scheme?, Substring)? {
        if reference.hasPrefix("//") { return (base, reference.dropFirst(2)) }
        let isOfScheme = { (character: Character) in character.isLetter || character.isNumber || "+-.".contains(character) }
        guard let first = reference.utf8.first, FieldByte.isLetter(first), let colon = reference.firstIndex(of: ":"),
            reference[..<colon].allSatisfy(isOfScheme)
        else { return nil }
        let rest = reference[reference.index(after: colon)...]
        return (OriginAddress.Scheme(rawValue: reference[..<colon].lowercased()), rest.hasPrefix("//") ? rest.dropFirst(2) : rest)
    }

    private static func hostAndPort(of authority: Substring) -> (String, Int?) {
        let address = authority.split(separator: "@", omittingEmptySubsequences: false).last ?? authority
        if address.hasPrefix("["), let end = address.firstIndex(of: "]") {
            let host = address[address.index(after: address.startIndex)..<end]
            return (host.lowercased(), Int(address[end...].dropFirst(2)))
        }
        let parts = address.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        return ((parts.first ?? "").lowercased(), parts.count > 1 ? Int(parts[1]) : nil)
    }

    private static func resolved(_ reference: String, against target: String) -> String {
        let path = target.prefix { $0 != "?" }
        if reference.isEmpty { return target }
        if reference.hasPrefix("/") { return reference }
        if reference.hasPrefix("?") { return path + reference }
        let directory = path.lastIndex(of: "/").map { path[...$0] } ?? "/"
        return directory + reference
    }
}

// MARK: - Links

/// The part of the `Link` field that pagination of a list and descriptions of an API need (RFC 8288 §3).
enum LinkField {
    /// Returns the reference of the first link with the relation `next`; nil when there is none.
    static func next(in fields: HTTPFields) -> String? { references("next", in: fields).first }

    /// Returns the references of the links with a relation, in their order.
    static func references(_ relation: String, in fields: HTTPFields) -> [String] {
        var found: [String] = []
        for value in fields[values: .link] {
            var rest = Substring(value)
            while let open = rest.firstIndex(of: "<"), let close = rest[open...].firstIndex(of: ">") {
                let reference = rest[rest.index(after: open)..<close]
                rest = rest[rest.index(after: close)...]
                let parameters = rest.prefix { $0 != "<" }
                if names(relation, in: parameters) { found.append(String(reference)) }
                rest = rest.dropFirst(parameters.count)
            }
        }
        return found
    }

    private static func names(_ relation: String, in parameters: Substring) -> Bool {
        parameters.split(whereSeparator: { $0 == ";" || $0 == "," }).contains { parameter in
            let halves = parameter.split(separator: "=", maxSplits: 1).map { FieldList.trimmed($0) }
            guard halves.count == 2, halves[0].lowercased() == "rel" else { return false }
            return halves[1].lowercased().split(whereSeparator: { $0 == " " || $0 == "\"" }).contains(Substring(relation))
        }
    }
}
