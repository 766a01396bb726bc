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
