// The four forms of a request target, parsed strictly (RFC 9112 §3.2; docs/security-model.md#head-rules).

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
}

extension RequestTarget {
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
        let percent = UInt8(ascii: "%")
        guard utf8.contains(percent) else { return String(self) }
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
