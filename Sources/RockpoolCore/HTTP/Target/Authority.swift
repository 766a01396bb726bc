// `uri-host [":" port]` as in Host, absolute-form and CONNECT (RFC 3986 §3.2, RFC 9110 §4.2, RFC 9112 §3.2).

/// A host and an optional port, parsed strictly: no userinfo, no zone, no percent-encoding, no unusual notation of an address.
package struct Authority: Hashable, Sendable {
    /// Lower case, without a trailing dot; an IPv6 address in canonical form (RFC 5952) and without brackets.
    package var host: String
    /// 1…65535; nil when absent or empty, which means the scheme's default (RFC 9110 §4.2.1).
    package var port: Int?

    /// A valid host, and a port in 1…65535. Neither is checked.
    package init(host: String, port: Int? = nil) {
        self.host = host
        self.port = port
    }

    /// Parses all of `text`, or throws a 400.
    package static func parse(_ text: Substring) throws(Refusal) -> Authority {
        let (host, rest) = try splitHost(text)
        guard let colon = rest.utf8.first else { return Authority(host: host) }
        guard colon == UInt8(ascii: ":") else { throw .badRequest("something other than a port follows the host") }
        let digits = rest.dropFirst()
        return Authority(host: host, port: digits.isEmpty ? nil : try port(in: digits))
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

    /// Removes the trailing dot: `example.com.` is the absolute form of `example.com` (RFC 3986 §3.2.2). If the two counted as different
    /// hosts, decryption, access rules and cache keys would differ; so they are one host everywhere, including in requests sent upstream.
    static func withoutRootDot(_ host: String) -> String { host.utf8.last == UInt8(ascii: ".") ? String(host.dropLast()) : host }

    /// At most five digits, so that the value cannot overflow to an allowed port.
    private static func port(in digits: Substring) throws(Refusal) -> Int {
        guard digits.isDigits, digits.utf8.count <= 5, let port = Int(digits), (1...65535).contains(port)
        else { throw .badRequest("the port is not a number from 1 to 65535") }
        return port
    }

    /// The subset of RFC 3986's reg-name that name services support: letters, digits, `-` and `_` in labels of 1…63, 253 in all. A name
    /// whose last label is a number must be an IPv4 address of four decimal parts, because resolvers also parse `127.1` and `0x7f000001` as
    /// addresses (RFC 3986 §7.4).
    private static func isHost(_ host: Substring) -> Bool {
        let name = host.utf8.last == UInt8(ascii: ".") ? Substring(host.utf8.dropLast()) : host
        guard (1...253).contains(name.utf8.count) else { return false }
        var length = 0  // of the current label
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
