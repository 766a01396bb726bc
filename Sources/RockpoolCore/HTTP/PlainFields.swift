// Request fields that influence the response, so that a request with one of them is fully decoded (RFC 9110, RFC 9111 §5.2.1).
import HTTPTypes

/// Classifies the fields of a request that might be answered before it is decoded.
package enum PlainFields {
    enum Role {
        case host, ifNoneMatch, ifModifiedSince, range, decides, none
        /// No decision depends on it: it names one request, or describes the client, or is not known.
        case free
        /// A credential, or a field that selects (`UnkeyedField`).
        case credential
    }

    /// Every field that the processing after the decoder evaluates in a read, except those that a stored reply is found by: a credential,
    /// `If-None-Match`, `If-Modified-Since`, `Range`, and the fields named by `Vary` of a stored response.
    package static let deciding: [String] =
        [
            "proxy-authorization",
            // cache directives and other conditions
            "cache-control", "pragma", "if-match", "if-unmodified-since", "if-range", "want-content-digest",
            "want-repr-digest", "available-dictionary", "dictionary-id",
            // connection and framing
            "te", "trailer", "transfer-encoding", "upgrade", "http2-settings", "keep-alive", "proxy-authenticate",
            "proxy-authentication-info",
            "content-length", "content-encoding", "content-type", "content-range", "content-location", "expect",
            // forwarding history and limits
            "via", "cdn-loop", "max-forwards", "alt-used",
            // overrides of the method, host or path
            "x-http-method-override", "x-http-method", "x-method-override", "x-host", "x-http-host-override", "x-host-override",
            "x-backend-host", "x-url-scheme", "forwarded", "front-end-https", "x-proxy-url", "x-wap-profile",
            // overrides of the client address
            "x-real-ip", "true-client-ip", "client-ip", "x-client-ip", "x-cluster-client-ip", "x-remote-addr", "x-remote-ip",
            "cf-connecting-ip", "fastly-client-ip",
            // preferences for this exchange
            "prefer", "idempotency-key", "early-data",
        ]
    /// Prefixes of fields defined by this proxy or added by other proxies.
    static let decidingPrefixes = ["rockpool-", "if-", "content-", "sec-websocket-", "proxy-"] + UnkeyedField.overridingPrefixes

    /// The role of a field. `Connection: keep-alive` states the default and has none.
    static func role(of name: Span<UInt8>, value: Span<UInt8>) -> Role {
        switch name.count {
        case 4 where isEqual(name, at: 0, to: host): return .host
        case 10 where isEqual(name, at: 0, to: connection), 16 where isEqual(name, at: 0, to: proxyConnection):
            return value.count == keepAlive.count && isEqual(value, at: 0, to: keepAlive) ? .none : .decides
        case 5 where isEqual(name, at: 0, to: range): return .range
        case 13 where isEqual(name, at: 0, to: ifNoneMatch): return .ifNoneMatch
        case 17 where isEqual(name, at: 0, to: ifModifiedSince): return .ifModifiedSince
        default:
            let role = table.value(of: name) ?? Self.role(of: UnkeyedField.byWords(name))
            return role == .free && isRead(name) ? .none : role
        }
    }

    /// Fields of remote procedure calls.
    static let calls = ["soapaction", "x-amz-target", "connect-protocol-version", "twirp-version"]
    /// Fields of uploads in several requests.
    static let uploads = ["tus-resumable", "upload-complete", "upload-draft-interop-version", "x-goog-upload-protocol"]

    /// True for a name that a decision looks at although nothing is known of its values: those of writes (calls, uploads, `If` of WebDAV,
    /// messages), of signatures, and any with `_`, which frameworks take for another name.
    private static func isRead(_ name: Span<UInt8>) -> Bool {
        for index in name.indices where name[index] == UInt8(ascii: "_") { return true }
        return readTable.value(of: name) != nil
    }

    private static let host = Array("host".utf8)
    private static let connection = Array("connection".utf8)
    private static let proxyConnection = Array("proxy-connection".utf8)
    private static let keepAlive = Array("keep-alive".utf8)
    private static let range = Array("range".utf8)
    private static let ifNoneMatch = Array("if-none-match".utf8)
    private static let ifModifiedSince = Array("if-modified-since".utf8)
    /// A request field that selects is taken for a part of the credential: a stored reply is found by it.
    private static func role(of kind: UnkeyedField?) -> Role {
        switch kind {
        case .selects?, .identifies?: .credential
        case .correlates?, .describes?, .unknown?, nil: .free
        case .known?, .overrides?: .none
        }
    }

    private static let readTable = FieldNameTable(
        (calls + uploads + ["if"]).map { ($0, true) },
        prefixes: ["x-amz-", "x-goog-", "signature", "webhook-"].map { ($0, true) })

    private static let table: FieldNameTable<Role> = {
        let secret = SecretFields.others.filter { name in !decidingPrefixes.contains { name.hasPrefix($0) } }
        let names: [(String, Role)] = deciding.map { ($0, .decides) } + secret.map { ($0, .none) }
        let prefixes: [(String, Role)] = decidingPrefixes.map { ($0, .decides) }
        return FieldNameTable(
            names + UnkeyedField.names.map { ($0.0, role(of: $0.1)) },
            prefixes: prefixes + UnkeyedField.prefixes.map { ($0.0, role(of: $0.1)) })
    }()

    /// True if the bytes from `start` on equal `lowercase`, ignoring case. `bytes` must be long enough.
    @inline(__always) static func isEqual(_ bytes: Span<UInt8>, at start: Int, to lowercase: [UInt8]) -> Bool {
        for index in lowercase.indices where FieldByte.lowercased(bytes[start + index]) != lowercase[index] { return false }
        return true
    }

    /// True if the bytes at `range` are `expected`.
    package static func isExactly(_ bytes: Span<UInt8>, at range: Range<Int>, _ expected: [UInt8]) -> Bool {
        guard range.count == expected.count else { return false }
        for index in expected.indices where bytes[range.lowerBound + index] != expected[index] { return false }
        return true
    }
}
