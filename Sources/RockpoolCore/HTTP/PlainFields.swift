// Which request fields have a say in the answer, so that a request with one of them is decoded: the one list (RFC 9110, RFC 9111 §5.2.1).
import HTTPTypes

/// What a field means to a request that might be answered before it is decoded.
package enum PlainFields {
    enum Role { case host, decides, none }

    /// Every field that anything behind the decoder reads of a read, other than what `Vary` of a stored response names.
    package static let deciding: [String] =
        SecretFields.identifying.map(\.canonicalName) + [
            "proxy-authorization",
            // what is wanted of caches, and of which part
            "cache-control", "pragma", "range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range",
            "want-content-digest",
            "want-repr-digest", "available-dictionary", "dictionary-id",
            // the connection and the framing
            "te", "trailer", "transfer-encoding", "upgrade", "http2-settings", "keep-alive", "proxy-authenticate",
            "proxy-authentication-info",
            "content-length", "content-encoding", "content-type", "content-range", "content-location", "expect",
            // where it has been and how far it may go
            "via", "cdn-loop", "max-forwards", "alt-used",
            // another method, host or path than it says
            "x-http-method-override", "x-http-method", "x-method-override", "x-host", "x-http-host-override", "x-host-override",
            "x-backend-host", "x-url-scheme", "forwarded", "front-end-https", "x-proxy-url", "x-wap-profile",
            // another client than it is
            "x-real-ip", "true-client-ip", "client-ip", "x-client-ip", "x-cluster-client-ip", "x-remote-addr", "x-remote-ip",
            "cf-connecting-ip", "fastly-client-ip",
            // preferences of this exchange
            "prefer", "idempotency-key", "early-data",
        ]
    /// Fields of ours, and those of other proxies' making.
    static let decidingPrefixes = ["rockpool-", "if-", "content-", "sec-websocket-", "proxy-"] + RequestOverride.unkeyedPrefixes

    /// What the field says of the request. `Connection: keep-alive` says what holds anyway.
    static func role(of name: Span<UInt8>, value: Span<UInt8>) -> Role {
        switch name.count {
        case 4 where isEqual(name, at: 0, host): return .host
        case 10 where isEqual(name, at: 0, connection), 16 where isEqual(name, at: 0, proxyConnection):
            return value.count == keepAlive.count && isEqual(value, at: 0, keepAlive) ? .none : .decides
        default: return table.contains(name) ? .decides : .none
        }
    }

    private static let host = Array("host".utf8)
    private static let connection = Array("connection".utf8)
    private static let proxyConnection = Array("proxy-connection".utf8)
    private static let keepAlive = Array("keep-alive".utf8)
    private static let table = PlainFieldTable(names: deciding, prefixes: decidingPrefixes)

    /// Whether the bytes from `start` on are `lowercase`, whatever their case. There must be as many.
    @inline(__always) static func isEqual(_ bytes: Span<UInt8>, at start: Int, _ lowercase: [UInt8]) -> Bool {
        for index in lowercase.indices where FieldByte.lowercased(bytes[start + index]) != lowercase[index] { return false }
        return true
    }
}

/// A set of names, asked for every field of every request: names that share first byte and length lie together.
private struct PlainFieldTable {
    private var names = [[[UInt8]]](repeating: [], count: 32 * 32)
    private var prefixes = [[[UInt8]]](repeating: [], count: 32)

    init(names all: [String], prefixes allPrefixes: [String]) {
        for name in all.map({ Array($0.utf8) }) { names[Self.slot(name[0], name.count)].append(name) }
        for prefix in allPrefixes.map({ Array($0.utf8) }) { prefixes[Int(prefix[0] & 31)].append(prefix) }
    }

    /// Letters of either case share their lower five bits.
    private static func slot(_ first: UInt8, _ count: Int) -> Int { Int(first & 31) << 5 | count & 31 }

    func contains(_ name: Span<UInt8>) -> Bool {
        for known in names[Self.slot(name[0], name.count)] where known.count == name.count && PlainFields.isEqual(name, at: 0, known) {
            return true
        }
        for prefix in prefixes[Int(name[0] & 31)] where name.count >= prefix.count && PlainFields.isEqual(name, at: 0, prefix) {
            return true
        }
        return false
    }
}
