// Classifies the target of a redirect: one within the origin may be followed, one to another host indicates a portal (RFC 9110 §10.2.2;
// docs/outbox.md#answers).

/// The target of a `Location`, classified by its distance from the request.
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
