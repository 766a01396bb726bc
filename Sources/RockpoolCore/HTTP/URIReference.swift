// Resolves `Location` and `Content-Location` within the same origin (RFC 3986 §5.2).

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
