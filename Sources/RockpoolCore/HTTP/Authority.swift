// `uri-host [":" port]` as Host, absolute-form and CONNECT carry it (RFC 3986 §3.2, RFC 9110 §4.2, RFC 9112 §3.2).

/// A host and perhaps a port, read strictly: no userinfo, no zone, no percent-encoding, no rare notation of an address.
package struct Authority: Hashable, Sendable {
    /// Lower case, without the dot that may end a name; an IPv6 address in canonical form (RFC 5952) and without brackets.
    package var host: String
    /// 1…65535; nil when absent or empty, which means the scheme's default (RFC 9110 §4.2.1).
    package var port: Int?

    /// A host that is known to be valid, and 1…65535.
    package init(host: String, port: Int? = nil) {
        self.host = host
        self.port = port
    }

    /// Reads `text` whole, or throws a 400.
    package static func parse(_ text: Substring) throws(Refusal) -> Authority {
        let (host, rest) = try splitHost(text)
        guard let colon = rest.utf8.first else { return Authority(host: host) }
        guard colon == UInt8(ascii: ":") else { throw .badRequest("something other than a port follows the host") }
        let digits = rest.dropFirst()
        return Authority(host: host, port: digits.isEmpty ? nil : try port(digits))
    }

    private static func splitHost(_ text: Substring) throws(Refusal) -> (host: String, rest: Substring) {
        if text.utf8.first == UInt8(ascii: "[") {
            guard let end = text.utf8.firstIndex(of: UInt8(ascii: "]")),
                let address = IPAddress(text[text.utf8.index(after: text.startIndex)..<end]), address.family == .v6
            else { throw .badRequest("no IPv6 address within the brackets of the host") }
            return (address.description, text[text.utf8.index(after: end)...])
        }
        let end = text.utf8.firstIndex(of: UInt8(ascii: ":")) ?? text.endIndex
        let host = text[..<end]
        guard isHost(host) else { throw .badRequest("the host is neither a name nor an address") }
        return (withoutRootDot(host.lowercased()), text[end...])
    }

    /// `example.com.` is the absolute form of the name `example.com` (RFC 3986 §3.2.2). Taken for two hosts, one of them would be
    /// decrypted, allowed or cached and the other not; so it is one everywhere, in what is sent upstream too.
    static func withoutRootDot(_ host: String) -> String { host.utf8.last == UInt8(ascii: ".") ? String(host.dropLast()) : host }

    /// Five digits at most, so that no sum can wrap around to an allowed port.
    private static func port(_ digits: Substring) throws(Refusal) -> Int {
        guard digits.isDigits, digits.utf8.count <= 5, let port = Int(digits), (1...65535).contains(port)
        else { throw .badRequest("the port is not a number from 1 to 65535") }
        return port
    }

    /// Of RFC 3986's reg-name only what name services hold: letters, digits, `-` and `_` in labels of 1…63, 253 in all.
    /// A name that ends in a number must be four decimal parts, because resolvers read `127.1` and `0x7f000001` as addresses too
    /// (RFC 3986 §7.4).
    private static func isHost(_ host: Substring) -> Bool {
        let name = host.utf8.last == UInt8(ascii: ".") ? Substring(host.utf8.dropLast()) : host
        guard (1...253).contains(name.utf8.count) else { return false }
        var length = 0  // of the label that is being read
        for byte in name.utf8 {
            if byte == UInt8(ascii: ".") {
                guard length > 0 else { return false }
                length = 0
            } else {
                length += 1
                guard length <= 63, byte.isAlphanumeric || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_") else { return false }
            }
        }
        guard length > 0 else { return false }
        return !isNumber(Substring(name.utf8.suffix(length))) || IPAddress(name) != nil
    }

    private static func isNumber(_ label: Substring) -> Bool {
        guard label.utf8.first?.isDigit == true else { return false }
        if label.isDigits { return true }
        return label.lowercased().hasPrefix("0x") && label.utf8.dropFirst(2).allSatisfy(\.isHexDigit)
    }
}
